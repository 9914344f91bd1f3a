"""The generator of the catalogue's permissions, from public dumps of IAM roles and a map of Google's methods."""
