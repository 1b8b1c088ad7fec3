"""Pictures of items: the owner uploads them, the study's judges see them."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response, UploadFile

from shortlist.web.auth import JUDGE_COOKIE, OWNER_COOKIE, Kind, Owner, ServiceDep, session
from shortlist.web.pictures import fetch, keep
from shortlist.web.schemas import Upload, problems
from shortlist.web.service import Service

router = APIRouter(tags=["pictures"])
PictureId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
NOTHING_ALLOWED = "default-src 'none'; sandbox"


@router.post("/api/uploads", status_code=201, responses=problems(401, 403))
def upload(service: ServiceDep, token: Owner, file: UploadFile) -> Upload:
    """Upload a PNG, JPEG, GIF or WebP picture. Its type is read from its bytes."""
    limit = service.settings.upload_bytes
    data = file.file.read(limit + 1)
    if len(data) > limit:
        raise HTTPException(413, f"this picture is too large; the limit is {limit:,} bytes")
    return Upload(image=f"/uploads/{keep(service.database, data)}")


@router.get("/uploads/{id}", include_in_schema=False)
def picture(request: Request, service: ServiceDep, id: PictureId) -> Response:
    """For the owner, and for judges of the study that the picture belongs to."""
    found = fetch(service.database, id)
    if found is None or not (_is_owner(request, service) or _is_judge(request, service, found.study)):
        raise HTTPException(404, "there is no such picture, or you may not see it")
    headers = {"content-security-policy": NOTHING_ALLOWED, "cache-control": "private, max-age=86400, immutable"}
    return Response(found.data, media_type=found.type, headers=headers)


def _is_owner(request: Request, service: Service) -> bool:
    return session(request, service, OWNER_COOKIE, Kind.owner_session) is not None


def _is_judge(request: Request, service: Service, study: int | None) -> bool:
    names = [name for name in request.cookies if name.startswith(JUDGE_COOKIE)]
    found = (session(request, service, name, Kind.judge_session) for name in names)
    return study is not None and any(token is not None and token.study_id == study for token in found)
