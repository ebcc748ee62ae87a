"""The model providers behind the port `runtime.ports.model`.

`resolve` chooses by name, `translate` speaks a provider library's message format, `provider` makes
one request, `offline` answers without any provider. Nothing here retries or decides.
"""
