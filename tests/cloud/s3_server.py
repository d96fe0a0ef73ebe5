"""moto's S3 server, one request after the other: `python -m tests.cloud.s3_server PORT`.

Its own command answers each request in a thread, and looks for an object before it writes it: two that create one
object at the same moment may both succeed, which S3 does not allow (`If-None-Match: *` is one step there).
"""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
