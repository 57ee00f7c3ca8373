"""The text of a value, the same for each engine."""
import datetime as dt
import decimal


def text(v):
    if v is None:
        return None
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (bytes, bytearray)):
        return bytes(v).hex()
    if isinstance(v, dt.datetime) and v.tzinfo:
        return str(v.astimezone(dt.timezone.utc).replace(tzinfo=None))
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}:{text(x)}" for k, x in v.items()) + "}"
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(str(text(x)) for x in v) + "]"
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    return str(v)
