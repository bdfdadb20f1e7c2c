"""qd's side: its one handler."""

import os
from urllib.parse import urlsplit

import filling
import ran

import qd


@qd.handler("noop")
def noop(job):
    ran.note(job.payload)


def fill():
    import mysql.connector

    place = urlsplit(os.environ["BENCH_URL"])
    login = {"user": place.username, "password": place.password}
    connection = mysql.connector.connect(host=place.hostname, port=place.port, database=place.path[1:], **login)
    cursor = connection.cursor()

    def one(n):
        qd.enqueue(cursor, "noop", n)
        connection.commit()

    def many(numbers):
        qd.enqueue_many(cursor, [qd.NewJob("noop", n) for n in numbers])
        connection.commit()

    filling.fill(one, many)
    connection.close()
