"""A thief copies refresh tokens, in addition to the moves of `Takeover`."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.system.attack_model.doors import OWN_DOOR, Credential
from tests.system.attack_model.takeover import MOVES, Takeover

USES = [("owner", "refresh"), ("thief", "refresh a copy")]


@dataclass
class Copy:
    """A refresh token that its owner and the thief have, and how often each got tokens since the copy."""

    holders: dict[str, Credential]
    uses: dict[str, int] = field(default_factory=lambda: {"owner": 0, "thief": 0})


class Copies(Takeover):
    def __init__(self) -> None:
        super().__init__()
        self.copies: list[Copy] = []

    @rule(move=st.sampled_from([*MOVES, *USES * len(MOVES)]))
    def moves(self, move: tuple[str, str]) -> None:
        if move in USES:
            self._copy()
            self._use(move[0])
        else:
            super().moves(move)

    def _copy(self) -> None:
        """Copy each token that has not been copied, when its session begins."""
        owners = [copy.holders["owner"] for copy in self.copies]
        for credential in self.living(*OWN_DOOR):
            if credential not in owners:
                copied = replace(credential, holder="thief", access_tokens=[], ended_by=set())
                self.copies.append(Copy({"owner": credential, "thief": copied}))

    def _use(self, holder: str) -> None:
        """Refresh with the newest tokens that the owner or the thief has, a minute or more after the other."""
        self.time_passes(0.02)
        for copy in self.copies:
            response = copy.holders[holder].ask(self.anyone)
            copy.uses[holder] += response.status_code == 200
            if "Already Used" in response.text:
                copy.holders["owner"].ended_by.add("a dead token")
        self.time_passes(0.02)

    @invariant()
    def finds_copies(self) -> None:
        for copy in self.copies:
            original, copied = copy.holders.values()
            session = f"the {original.kind} whose token was copied"
            assert min(copy.uses.values()) < 2, f"{session} lives after two refreshes of each: {copy.uses}"
            if "a dead token" in original.ended_by:
                for token in original.access_tokens[-1:] + copied.access_tokens[-1:]:
                    opened = self.doors.opened(self.anyone, token)
                    assert not opened, f"a token of {session} opens {opened}"
