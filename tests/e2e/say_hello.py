"""What a replica says to a client that begins as gRPC does, in hexadecimal; nothing if it hangs up. Arguments: its IP
address; for TLS then `tls`, and a certificate and its key if there are any."""

import socket
import ssl
import sys

PORT = 2222
# How a client of HTTP/2 begins, and with it gRPC; the server answers with its settings.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def answer(address, *tls):
    try:
        with socket.create_connection((address, PORT), timeout=20) as connection:
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                context.set_alpn_protocols(["h2"])
                if tls[1:]:
                    context.load_cert_chain(*tls[1:])
                connection = context.wrap_socket(connection)
            connection.sendall(HELLO)
            return connection.recv(64)
    except (ssl.SSLError, ConnectionError):
        return b""


if __name__ == "__main__":
    print(answer(*sys.argv[1:]).hex())
