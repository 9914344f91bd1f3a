"""Where the program of finetune.yaml begins."""
