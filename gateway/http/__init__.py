"""HTTP: the API, the event stream and the pages. It decides who may ask, never what is done."""
