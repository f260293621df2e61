"""Users and their API keys. Without the usual envelope: one user is a flat object, and a list is
`{"data": [...]}`."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from penstock.accounts import keys, users
from penstock.accounts.keys import ApiKey
from penstock.accounts.role import Role
from penstock.accounts.users import NAME_PATTERN, Profile, User
from penstock.api.callers.auth import MayShowToken, identify
from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import MAX_OFFSET, Limit
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.services import HasPeople, Services, ServicesDep
from penstock.jobs.http_bodies import Body, Whole
from penstock.kit.errors import Conflict, NotFound, PayloadTooLarge, PermissionDenied

router = APIRouter(prefix="/api/users", tags=["users"], route_class=StrictRoute)
CHANGES = declare(*PUBLIC, NotFound, Conflict, PayloadTooLarge)
RoleWord = Annotated[Literal["analyst", "admin", "ops"], Field(examples=["analyst"])]
Username = Annotated[
    str, Path(min_length=1, max_length=users.MAX_NAME, pattern=NAME_PATTERN, examples=["ann"])
]
KeyId = Annotated[int, Path(ge=1, le=keys.MAX_ID, examples=[1])]
Email = Annotated[
    str, Field(max_length=320, pattern=r"^[^\s@\x00]+@[^\s@\x00]+$", examples=["ann@example.com"])
]
Label = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$", examples=["Ann Lee"])
]


class Shown(BaseModel):
    """A user."""

    username: str = Field(examples=["ann"])
    email: str | None
    display_name: str | None
    role: RoleWord
    is_active: bool
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None
    role_changed_at: datetime | None
    role_changed_by: str | None


class Bootstrapped(Shown):
    api_key: str = Field(description="Shown once.", examples=["pst_…"])


class UserList(BaseModel):
    data: list[Shown]


class ShownKey(BaseModel):
    id: int = Field(examples=[1])
    username: str = Field(examples=["ann"])
    name: str = Field(examples=["notebook"])
    prefix: str = Field(description="The first characters of the key.", examples=["pst_Ab12"])
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKey(ShownKey):
    key: str = Field(description="Shown once, and not stored.", examples=["pst_…"])


class KeyList(BaseModel):
    data: list[ShownKey]


class Revoked(BaseModel):
    revoked: int = Field(description="How many keys were active.", examples=[1])


class FirstUser(Body):
    username: Annotated[
        str, Field(min_length=1, max_length=users.MAX_NAME, pattern=NAME_PATTERN, examples=["ann"])
    ]
    email: Email | None = None
    display_name: Label | None = None


class NewUser(FirstUser):
    role: RoleWord = "analyst"


class ChangedUser(Body):
    """Omitted or null fields keep their values."""

    email: Email | None = None
    display_name: Label | None = None
    is_active: StrictBool | None = None


class ChangedRole(Body):
    role: RoleWord


class KeyBody(Body):
    name: Annotated[Label, Field(examples=["notebook"])] = "key"
    expires_in_days: Annotated[Whole, Field(ge=1, le=keys.MAX_LIFE.days)] = keys.DEFAULT_LIFE.days


class UserQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    limit: Limit = 50
    is_active: bool | None = None


@router.get("", summary="List users", responses=declare(*PUBLIC))
async def list_users(
    query: Annotated[UserQuery, Query()], people: HasPeople, _: Permit
) -> UserList:
    """Newest first."""
    page = await people.users.page(
        is_active=query.is_active, offset=query.offset, limit=query.limit
    )
    return UserList(data=[_shown(user) for user in page])


@router.post(
    "", summary="Add a user", status_code=201, responses=declare(*PUBLIC, Conflict, PayloadTooLarge)
)
async def add(body: NewUser, people: HasPeople, grant: Permit) -> Shown:
    """The role must not be above the caller's."""
    user = await people.users.add(
        body.username,
        role=Role[body.role.upper()],
        email=body.email,
        display_name=body.display_name,
        actor=grant.identity.actor,
    )
    return _shown(user)


@router.post(
    "/bootstrap",
    summary="Add the first user",
    status_code=201,
    dependencies=[MayShowToken],
    responses=declare(*PUBLIC, Conflict, PayloadTooLarge),
)
async def bootstrap(
    body: FirstUser, request: Request, response: Response, services: ServicesDep, people: HasPeople
) -> Bootstrapped:
    """Creates a user with the role ops and an API key. Needs the operator token, and works only
    while there are no users."""
    await _check_may_bootstrap(request, services)
    user, key = await people.keys.bootstrap(
        body.username, email=body.email, display_name=body.display_name
    )
    response.headers["Cache-Control"] = "no-store"
    return Bootstrapped(**_shown(user).model_dump(), api_key=key)


@router.get("/{username}", summary="Show a user", responses=declare(*PUBLIC, NotFound))
async def show(username: Username, people: HasPeople, grant: Permit) -> Shown:
    grant.over(username)
    return _shown(await people.users.get(username))


@router.put("/{username}", summary="Change a user", responses=CHANGES)
async def change(username: Username, body: ChangedUser, people: HasPeople, grant: Permit) -> Shown:
    profile = Profile(email=body.email, display_name=body.display_name, is_active=body.is_active)
    return _shown(await people.users.change(username, profile, actor=grant.identity.actor))


@router.delete("/{username}", summary="Deactivate a user", responses=CHANGES)
async def deactivate(username: Username, people: HasPeople, grant: Permit) -> Shown:
    """All credentials of the user stop working at once. Their resources stay; PUT with `is_active`
    reactivates the user."""
    return _shown(
        await people.users.change(username, Profile(is_active=False), actor=grant.identity.actor)
    )


@router.put("/{username}/role", summary="Change a user's role", responses=CHANGES)
async def change_role(
    username: Username, body: ChangedRole, people: HasPeople, grant: Permit
) -> Shown:
    """Takes effect with the user's next request."""
    return _shown(
        await people.users.change_role(
            username, Role[body.role.upper()], actor=grant.identity.actor
        )
    )


@router.get("/{username}/api-keys", summary="List API keys", responses=declare(*PUBLIC, NotFound))
async def list_keys(username: Username, people: HasPeople, grant: Permit) -> KeyList:
    """Newest first, including inactive ones; only the prefix of each key is shown."""
    grant.over(username)
    return KeyList(data=[ShownKey(**_key(key)) for key in await people.keys.of(username)])


@router.post(
    "/{username}/api-keys", summary="Create an API key", status_code=201, responses=CHANGES
)
async def make_key(
    username: Username,
    response: Response,
    people: HasPeople,
    grant: Permit,
    body: KeyBody | None = None,
) -> NewKey:
    """The key is returned only in this response."""
    grant.over(username)
    settings = body or KeyBody()
    life = timedelta(days=settings.expires_in_days)
    row, key = await people.keys.create(
        username, name=settings.name, life=life, actor=grant.identity.actor
    )
    response.headers["Cache-Control"] = "no-store"
    return NewKey(**_key(row), key=key)


@router.delete("/{username}/api-keys", summary="Revoke all API keys of a user", responses=CHANGES)
async def revoke_keys(username: Username, people: HasPeople, grant: Permit) -> Revoked:
    grant.over(username)
    return Revoked(revoked=await people.keys.revoke(username, None, actor=grant.identity.actor))


@router.delete("/{username}/api-keys/{key_id}", summary="Revoke an API key", responses=CHANGES)
async def revoke_key(
    username: Username, key_id: KeyId, people: HasPeople, grant: Permit
) -> Revoked:
    """Takes effect with the next request; a revoked key stays in the list."""
    grant.over(username)
    return Revoked(revoked=await people.keys.revoke(username, key_id, actor=grant.identity.actor))


async def _check_may_bootstrap(request: Request, services: Services) -> None:
    if (await identify(request, services)).role < Role.OPS:
        raise PermissionDenied(
            "Only the operator can create the first user.", hint="Send the operator token."
        )


def _shown(user: User) -> Shown:
    values = {name: getattr(user, name) for name in User.__slots__}
    return Shown.model_validate(values | {"role": user.role.word})


def _key(key: ApiKey) -> dict[str, object]:
    values = {name: getattr(key, name) for name in ApiKey.__slots__}
    return {"id": values.pop("api_key_id"), "prefix": values.pop("hint")} | values
