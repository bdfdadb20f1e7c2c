"""django-tasks' side: the settings of a Django project."""

import os
from urllib.parse import urlsplit

_place = urlsplit(os.environ["BENCH_URL"])

SECRET_KEY = "of no use here"
USE_TZ = True
INSTALLED_APPS = ["django_tasks", "django_tasks_db"]
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "HOST": _place.hostname,
        "PORT": _place.port,
        "NAME": _place.path[1:],
        "USER": _place.username,
        "PASSWORD": _place.password,
    }
}
