import click

from auth.ops.backups import age


@click.command("backup-key", short_help="Create the key that decrypts backups.")
def command() -> None:
    """Print a new key that decrypts backups, and the setting with which backups are encrypted for it.

    Run it on another machine: anyone with the key can read all backups. It is shown only once.

    \b
    Example: (umask 077; latchkey backup-key > latchkey.key)
    """
    recipient, identity = age.new_identity()
    click.echo(
        f"Set this on the server, and keep the key elsewhere:\nAUTH_BACKUP_RECIPIENTS={recipient}", err=True
    )
    click.echo(identity, nl=False)
