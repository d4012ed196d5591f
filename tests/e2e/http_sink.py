#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes posts: http_sink.py [STATUS[,STATUS...]]

Prints its port, then a line for each post: the path, a blank, the body. Answers
with these statuses in turn, the last one for ever; "hang" answers never.
"""
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

answers = sys.argv[1].split(",") if len(sys.argv) > 1 else ["200"]
lock = threading.Lock()


class Sink(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with lock:
            status = answers.pop(0) if len(answers) > 1 else answers[0]
            print(self.path, body, flush=True)
        if status == "hang":
            threading.Event().wait()
        self.send_response(int(status))
        if status.startswith("3"):
            self.send_header("Location", f"http://127.0.0.1:{port}/moved")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
server.daemon_threads = True
port = server.server_address[1]
print(port, flush=True)
server.serve_forever()
