package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sqe/audit"
	"sqe/audit/ranger"
	"sqe/config"
	"sqe/ops"
	"sqe/policy"
	"sqe/rangerclient"
)

// auditCloseTime is how long audit events are sent after the last session ended.
// What does not arrive within it waits in the spool for the next start.
const auditCloseTime = 5 * time.Second

// auditLog is where audit events go.
type auditLog struct {
	audit.Sink
	outputs *ranger.Sink // nil: there are none
}

// openAudit opens the audit log and its outputs, and their files again at SIGHUP,
// after they were rotated.
func (in *instance) openAudit(sources []policy.Source) (*auditLog, error) {
	cfg := in.config
	out := &auditLog{Sink: audit.Discard{}}
	var options []audit.Option
	if len(cfg.Outputs) > 0 {
		outputs, err := ranger.Open(ranger.Options{
			Naming:  ranger.Naming{Agent: cfg.Audit.Agent, Host: cfg.Audit.AgentHost, Cluster: cfg.Audit.Cluster},
			Sources: auditSources(cfg.Policies, sources), Outputs: auditOutputs(cfg.Outputs),
			Spool: string(cfg.Audit.Spool), Sync: audit.Sync(cfg.Audit.Sync), Log: in.log,
		})
		if err != nil {
			return nil, err
		}
		out.Sink, out.outputs = outputs, outputs
		options = append(options, audit.Also(outputs))
		in.closing(func() {
			ctx, cancel := context.WithTimeout(context.Background(), auditCloseTime)
			defer cancel()
			outputs.Close(ctx)
		})
	}
	var file *audit.File
	if cfg.Audit.File != "" {
		var err error
		options = append(options, audit.WithSync(audit.Sync(cfg.Audit.Sync)))
		if file, err = audit.NewFile(string(cfg.Audit.File), audit.OnFailure(cfg.Audit.OnFailure), in.log, options...); err != nil {
			return nil, err
		}
		out.Sink = file
		in.closing(func() { _ = file.Close() })
	}
	in.reopenAtHangup(func() error {
		var errs []error
		if file != nil {
			errs = append(errs, file.Reopen())
		}
		if out.outputs != nil {
			errs = append(errs, out.outputs.Reopen())
		}
		return errors.Join(errs...)
	})
	return out, nil
}

// reopenAtHangup calls reopen at every SIGHUP.
func (in *instance) reopenAtHangup(reopen func() error) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-hup:
				if err := reopen(); err != nil {
					in.log.Error("the audit log cannot be opened again", "error", err)
				}
			case <-done:
				return
			}
		}
	}()
	in.closing(func() {
		signal.Stop(hup)
		close(done)
	})
}

// auditSources says which Ranger services the policies of a source are of.
func auditSources(cfg []config.Policy, sources []policy.Source) []ranger.Source {
	service := func(s rangerclient.Service) ranger.Service {
		return ranger.Service{Name: s.Name, Type: s.Type, ID: int(s.ID)}
	}
	var out []ranger.Source
	for i, p := range cfg {
		s := ranger.Source{Name: p.Name, Realm: p.Realm, WithCatalog: p.DatabaseKey == "catalog.namespace"}
		if src, ok := sources[i].(*rangerclient.Source); ok {
			s.Services = func() (objects, data ranger.Service) {
				a, b := src.Services()
				return service(a), service(b)
			}
		}
		out = append(out, s)
	}
	return out
}

func auditOutputs(cfg []config.AuditOutput) []ranger.Output {
	var out []ranger.Output
	for _, o := range cfg {
		out = append(out, ranger.Output{
			Name: o.Name, Kind: ranger.Kind(o.Kind), Path: string(o.File), Format: ranger.Format(o.Format),
			Remote: ranger.Remote{
				URL: o.URL, Username: o.Username, Password: o.Password.Reveal(), CAFile: string(o.CAFile),
				CertFile: string(o.ClientCert), KeyFile: string(o.ClientKey), Timeout: time.Duration(o.Timeout),
			},
			Limit: int64(o.SpoolLimit), WhenFull: ranger.WhenFull(o.WhenFull),
		})
	}
	return out
}

// metrics are the numbers of the outputs.
func (a *auditLog) metrics() []ops.AuditOutput {
	if a.outputs == nil {
		return nil
	}
	var out []ops.AuditOutput
	for _, s := range a.outputs.Stats() {
		out = append(out, ops.AuditOutput{
			Output: s.Output, Queued: s.Queued, Bytes: s.Bytes, Sent: s.Sent, SetAside: s.SetAside, Dropped: s.Dropped, Failing: s.LastError != "",
		})
	}
	return out
}
