"""django-tasks' one task, and how it is added."""

import os

import django
import filling
import ran
from django_tasks import task

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_app")


@task()
def noop(n):
    ran.note(n)


def fill():
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    filling.fill(noop.enqueue)
