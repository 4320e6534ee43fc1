"""moto's S3 with one request at a time, so that a condition and its put are one step as in S3.
usage: s3_server.py PORT"""
import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app),
           threaded=False)
