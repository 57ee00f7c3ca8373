package admin

import (
	"context"
	"errors"

	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

var _ rangerclient.Watcher = (*Administrator)(nil)

// Look implements rangerclient.Watcher.
func (a *Administrator) Look(ctx context.Context, policies []*model.Policy, roles []*model.Role) error {
	back := a.writer.LookBack(ctx, policies)
	restored, err := a.writer.Look(ctx, policies)
	err = errors.Join(back, err)
	again, rolesErr := a.keeper.lookRoles(ctx, roles)
	if restored || again {
		if rerr := a.config.Reload(ctx); err == nil {
			err = rerr
		}
	}
	return errors.Join(err, rolesErr)
}

// Notes implements rangerclient.Watcher.
func (a *Administrator) Notes() (notes []string, lost, restored int64) {
	losses, lost, restored := a.writer.Losses()
	for _, l := range losses {
		notes = append(notes, l.String())
	}
	members, more, again := a.keeper.members.list(a.writer.watched.now())
	for _, l := range members {
		notes = append(notes, l.String())
	}
	return notes, lost + more, restored + again
}
