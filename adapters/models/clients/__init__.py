"""Connections to the providers: one client per model, the library's own retries switched off.

Retrying belongs to the engine (MSG-18), which counts attempts over all models and honours the
budget; a library that retries underneath would multiply them. The client is told so once: told with
a request, pydantic-ai would make a new client for it.
"""
