"""A local emulator of Google Cloud's REST APIs, driven by Google's discovery documents. It listens only on loopback."""
