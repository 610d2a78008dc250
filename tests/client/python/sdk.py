"""Stand-ins with the structure of the packages `openai` and `anthropic`, for machines without these.

What matters is the same: resources that post through their client, `copy`, options of a request, parsed answers and
streams with an iterator.
"""

import http.client
import json
from typing import Any, Dict, Iterator, Optional
from urllib.parse import urlsplit


class APIStatusError(Exception):
    pass


class Options:
    def __init__(self, method: str, url: str, json_data: Dict[str, Any]) -> None:
        self.method = method
        self.url = url
        self.json_data = json_data
        self.headers: Dict[str, str] = {}

    def copy(self) -> "Options":
        return Options(self.method, self.url, self.json_data)


class Model:
    """An answer, whose members are attributes."""

    def __init__(self, members: Dict[str, Any]) -> None:
        self.__dict__.update({name: _model(value) for name, value in members.items()})
        self._members = members

    def model_dump(self, **_: Any) -> Dict[str, Any]:
        return self._members


def _model(value: Any) -> Any:
    if isinstance(value, dict):
        return Model(value)
    return [_model(one) for one in value] if isinstance(value, list) else value


class Stream:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self._iterator = self._events()

    def _events(self) -> Iterator[Model]:
        try:
            for line in self._response:
                data = line.decode().strip()
                if data == "data: [DONE]":
                    return
                if data.startswith("data: "):
                    yield Model(json.loads(data[6:]))
        finally:
            self._response.close()

    def __iter__(self) -> Iterator[Model]:
        yield from self._iterator

    def close(self) -> None:
        self._response.close()


class Client:
    """Both packages in one: which resources it has differs, not how they send."""

    def __init__(self, api_key: str, base_url: str, max_retries: int = 0) -> None:
        self.api_key = api_key
        self.base_url = base_url
        self.chat = Resource(self, completions=Resource(self, "/chat/completions"))
        self.responses = Resource(self, "/responses")
        self.embeddings = Resource(self, "/embeddings")
        self.images = Images(self, "/images/generations")
        self.messages = Resource(self, "/v1/messages")

    def copy(self, **_: Any) -> "Client":
        return Client(self.api_key, self.base_url)

    with_options = copy

    def post(self, path: str, body: Dict[str, Any], stream: bool) -> Any:
        return self.request(Model, Options("post", path, body), stream=stream, stream_cls=Stream)

    def request(self, cast_to: Any, options: Options, *, stream: bool = False, stream_cls: Any = None) -> Any:
        parts = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        text = json.dumps(options.json_data)
        connection.request("POST", f"{parts.path}{options.url}", text, {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status >= 400:
            raise APIStatusError(response.read().decode())
        return Stream(response) if stream else Model(json.loads(response.read()))


class Resource:
    def __init__(self, client: Client, path: str = "", completions: Optional["Resource"] = None) -> None:
        self._post = client.post
        self._path = path
        self.completions = completions

    def create(self, **body: Any) -> Any:
        return self._post(self._path, body, stream=body.get("stream", False))


class Images(Resource):
    generate = Resource.create


OpenAI = Client
Anthropic = Client
