"""The generator of the documents by which whole objects are judged, from what Google, Pulumi and Kubernetes publish."""
