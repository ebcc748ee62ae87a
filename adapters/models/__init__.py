"""The model providers behind the port `runtime.ports.model`.

`model_registry` chooses by name, `translation` speaks a provider library's message format,
`provider` makes one request, `offline` answers without any provider. Nothing here retries or
decides.
"""
