"""The report of a study, made when it is asked for."""

import threading

from fastapi import APIRouter, Response

from shortlist.report.page import POLICY, make_report
from shortlist.web.access import Here, Owner, StudyName
from shortlist.web.schemas import problems

router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))
_drawing = threading.Lock()  # matplotlib draws one figure at a time


@router.get(
    "/studies/{name}/report.html",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **problems(404, 501)},
)
def report(here: Here, token: Owner, name: StudyName) -> Response:
    """The whole study as one HTML file that loads nothing; takes seconds."""
    study = here.shelf.open(name).study
    study.refresh()
    with _drawing:
        page = make_report(study)
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})
