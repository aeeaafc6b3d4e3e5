"""Organisations of users: members, roles and invitations, which every token of a member says."""

from auth.extensions import Extension


class Organizations(Extension):
    api = ("routes",)


EXTENSION = Organizations
