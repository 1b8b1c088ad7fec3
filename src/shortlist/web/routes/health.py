"""For machines that look after the service."""

from fastapi import APIRouter, Response

from shortlist import __version__
from shortlist.web.access import Here
from shortlist.web.schemas import Health, problems

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=problems())
def healthz(here: Here) -> Health:
    """The service runs and its storage answers."""
    with here.database.reading() as connection:
        connection.exec_driver_sql("SELECT 1")
    return Health(status="ok", version=__version__)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, **problems()})
def metrics(here: Here) -> Response:
    """Counts and times of this worker, for Prometheus."""
    return Response(here.metrics.text(), media_type="text/plain; version=0.0.4")
