package admin

import (
	"context"

	"sqe/rangerclient"
	"sqe/rangerclient/model"
)

var _ rangerclient.Watcher = (*Administrator)(nil)

// Look implements rangerclient.Watcher.
func (a *Administrator) Look(ctx context.Context, policies []*model.Policy) error {
	restored, err := a.writer.Look(ctx, policies)
	if restored {
		if rerr := a.config.Reload(ctx); err == nil {
			err = rerr
		}
	}
	return err
}

// Notes implements rangerclient.Watcher.
func (a *Administrator) Notes() (notes []string, lost, restored int64) {
	losses, lost, restored := a.writer.Losses()
	for _, l := range losses {
		notes = append(notes, l.String())
	}
	return notes, lost, restored
}
