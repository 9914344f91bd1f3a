"""Generates the documents against which whole objects are checked, from data of Google, Pulumi and Kubernetes."""
