"""A local Google Cloud at the level of its REST APIs, driven by Google's discovery documents; loopback only."""
