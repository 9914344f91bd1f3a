"""Local stand-ins, so that the real Pulumi engine deploys every stack without a cloud."""
