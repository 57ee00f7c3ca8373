package server

import (
	"context"
	"os"
	"sqe/engine"
	"sqe/plan"
	"testing"
	"time"
)

func TestManual(t *testing.T) {
	if os.Getenv("MANUAL") == "" {
		t.Skip()
	}
	s := start(t, func(o *Options) { o.Address = "127.0.0.1:33999"; o.PlainAllowed = os.Getenv("MANUAL") == "plain" })
	for _, q := range []string{"SET AUTOCOMMIT = 0", "SET NAMES utf8mb4", "SET autocommit=0", "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_0900_ai_ci'", "SET @@session.autocommit = OFF", "SET @@session.autocommit = 0"} {
		s.answer(q, func(context.Context, []plan.Literal) (*engine.Result, error) { return &engine.Result{}, nil })
	}
	s.answer("select @@version_comment limit 1", func(context.Context, []plan.Literal) (*engine.Result, error) {
		return values("@@version_comment", "x"), nil
	})
	time.Sleep(40 * time.Second)
	t.Log(s.log.String())
	t.Log(s.engine.texts, s.engine.infos)
}
