"""Conditional writes to object stores, which pyarrow's filesystems lack."""
from __future__ import annotations

import uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Conditional", "conditional"]

_LOST = (404, 409, 412)  # deleted, concurrent change, changed


def conditional(scheme: str, root: str, options: Mapping[str, Any]) -> Conditional | None:
    """For a folder (bucket/key) and pyarrow's options for it; None if conditional writes are not
    available: a scheme other than s3, or no botocore."""
    if scheme != "s3":
        return None
    try:
        import botocore.session  # noqa: F401
    except ImportError:
        return None
    return Conditional(root, options)


class Conditional:
    """GET with an ETag, and PUT conditional on it, for objects in a folder in S3. options: those of
    pyarrow.fs.S3FileSystem."""

    def __init__(self, root: str, options: Mapping[str, Any]) -> None:
        self.bucket, _, self.prefix = root.partition("/")
        self.options = dict(options)
        self._client: Any = None
        self._probed = False

    def _key(self, name: str) -> str:
        return self.prefix + "/" + name if self.prefix else name

    def _config(self) -> Any:
        from botocore import UNSIGNED
        from botocore.config import Config
        options = self.options
        path = options.get("endpoint_override") and not options.get("force_virtual_addressing")
        # One attempt: a retry could not tell a lost race from its own first attempt.
        more: dict[str, Any] = {"retries": {"total_max_attempts": 1},
                                "s3": {"addressing_style": "path" if path else "auto"}}
        if options.get("anonymous"):
            more["signature_version"] = UNSIGNED
        if isinstance(options.get("proxy_options"), str):
            more["proxies"] = dict.fromkeys(("http", "https"), options["proxy_options"])
        return Config(**more)

    def _role(self, session: Any, keys: dict[str, Any]) -> dict[str, Any]:
        options = self.options
        if not options.get("role_arn"):
            return keys
        request = {"RoleArn": options["role_arn"],
                   "RoleSessionName": options.get("session_name") or "libsafetensors"}
        if options.get("external_id"):
            request["ExternalId"] = options["external_id"]
        sts = session.create_client("sts", region_name=options.get("region"), **keys)
        found = sts.assume_role(**request)["Credentials"]
        return {"aws_access_key_id": found["AccessKeyId"],
                "aws_secret_access_key": found["SecretAccessKey"],
                "aws_session_token": found["SessionToken"]}

    def _made(self) -> Any:
        import botocore.session
        options = self.options
        session = botocore.session.get_session()
        keys = {"aws_access_key_id": options.get("access_key"),
                "aws_secret_access_key": options.get("secret_key"),
                "aws_session_token": options.get("session_token")}
        endpoint = options.get("endpoint_override")
        if endpoint and "://" not in endpoint:
            endpoint = (options.get("scheme") or "https") + "://" + endpoint
        return session.create_client("s3", region_name=options.get("region"),
                                     endpoint_url=endpoint, config=self._config(),
                                     verify=options.get("tls_ca_file_path"),
                                     **self._role(session, keys))

    def _s3(self) -> Any:
        if self._client is None or self.options.get("role_arn"):  # its keys expire
            self._client = self._made()
        return self._client

    def fetch(self, name: str) -> tuple[bytes, str]:
        """All bytes and the ETag, from one request. NotImplementedError if the store ignores
        conditions."""
        self._probe()
        from botocore.exceptions import BotoCoreError, ClientError
        try:
            found = self._s3().get_object(Bucket=self.bucket, Key=self._key(name))
            with found["Body"] as body:
                return body.read(), found["ETag"]
        except ClientError as error:
            if _status(error) == 404:
                raise FileNotFoundError(2, "no such object", name) from None
            raise OSError(5, "GET: %s" % error, name) from error
        except BotoCoreError as error:
            raise OSError(5, "GET: %s" % error, name) from error

    def put_if(self, name: str, data: bytes, tag: str | None) -> bool:
        """Writes if the object still has this tag (None: is absent); returns whether it did."""
        from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        try:
            self._s3().put_object(Bucket=self.bucket, Key=self._key(name), Body=data, **condition)
        except ClientError as error:
            status = _status(error)
            if status in _LOST:
                return False
            if status == 501:
                raise _unguarded(name) from None
            raise OSError(5, "PUT: %s" % error, name) from error
        except ParamValidationError:
            raise NotImplementedError("expected a botocore that knows conditional writes (1.36 or "
                                      "later), found an older one") from None
        except BotoCoreError as error:
            raise OSError(5, "PUT: %s" % error, name) from error
        return True

    def _probe(self) -> None:
        """A store without conditional writes ignores the condition: this put then succeeds."""
        if self._probed:
            return
        name = ".dataset_manifest.probe-%s" % uuid.uuid4()
        if self.put_if(name, b"", '"00000000000000000000000000000000"'):
            self._s3().delete_object(Bucket=self.bucket, Key=self._key(name))
            raise _unguarded(name)
        self._probed = True


def _unguarded(name: str) -> NotImplementedError:
    return NotImplementedError("expected an object store with conditional writes (If-Match), found "
                               "one without; single_writer=True commits there, if no other process "
                               "does at the same time")


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
