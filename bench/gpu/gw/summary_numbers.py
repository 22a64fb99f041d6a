"""The numbers of a summary that are results; used by the scripts that compare bits of jobs."""

# Members of a summary that name a time or a place differ from run to run.
NOT_RESULTS = ("second", "device", "rank", "memory", "mib", "bytes", "version", "time")


def results(value, path=""):
    """Every number of a summary that is a result, without times and devices, as "path=value"."""
    if isinstance(value, dict):
        for key in sorted(value):
            if not any(word in key.lower() for word in NOT_RESULTS):
                yield from results(value[key], f"{path}/{key}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from results(one, f"{path}/{index}")
    elif isinstance(value, (int, float)):
        yield f"{path}={value!r}"
