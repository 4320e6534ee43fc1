"""Certificates for 127.0.0.1, by the program openssl."""
import os
import ssl
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


# Hosts that a proxy has at 127.0.0.1.
NAMES = "DNS:" + ",DNS:".join((
    "model.test", "huggingface.co", "hf.co", "cas-bridge.xethub.hf.co", "huggingface.co.evil.test",
    "evilhuggingface.co", "civitai.com", "b2.civitai.com", "civitai.com.evil.test"))


class Certificates:
    """ca.pem, other-ca.pem; good, expired, wrong (for another host) and unknown (of the other
    authority), each NAME.pem and NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        for name in ("ca", "other-ca"):
            self.openssl("req", "-x509", *KEY, "-keyout", name + ".key", "-out", name + ".pem",
                         "-subj", "/CN=" + name, "-days", "2")
        for name, host, days, ca in (("good", "IP:127.0.0.1," + NAMES, 2, "ca"),
                                     ("expired", "IP:127.0.0.1", -1, "ca"),
                                     ("wrong", "DNS:other.test", 2, "ca"),
                                     ("unknown", "IP:127.0.0.1", 2, "other-ca")):
            with open(self.path(name + ".ext"), "w", encoding="utf-8") as file:
                file.write("subjectAltName=" + host + "\n")
            self.openssl("req", *KEY, "-keyout", name + ".key", "-out", name + ".csr", "-subj",
                         "/CN=" + name)
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey",
                         ca + ".key", "-CAcreateserial", "-days", str(days), "-extfile",
                         name + ".ext", "-out", name + ".pem")

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def path(self, name):
        return os.path.join(self.folder, name)

    def context(self, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        return context
