"""The generator of the documents for checking whole objects, from data that Google, Pulumi and Kubernetes publish."""
