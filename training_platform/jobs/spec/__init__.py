"""What researchers write of a job."""
