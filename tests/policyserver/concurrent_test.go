//go:build e2e

package policyserver

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// together runs f n times at the same moment and returns what it returned.
func together[T any](n int, f func(i int) (T, error)) ([]T, []error) {
	out, errs := make([]T, n), make([]error, n)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-start
			out[i], errs[i] = f(i)
		}()
	}
	ready.Wait()
	close(start)
	done.Wait()
	return out, errs
}

// TestConcurrentChanges: of simultaneous changes each is made or refused, none is
// lost from the history, and no two get the same version.
func TestConcurrentChanges(t *testing.T) {
	p := create(t, on(t, "orders", allow(bob, "select")))
	const n = 8
	made, errs := together(n, func(i int) (*model.Policy, error) {
		c := *p
		c.Description = fmt.Sprint("writer ", i)
		return server.UpdatePolicy(ctx, &c)
	})
	versions := []int64{1}
	byVersion := map[int64]string{}
	for i, err := range errs {
		if err != nil {
			wantKind(t, err, admin.Conflict, "the slower one")
			continue
		}
		versions = append(versions, made[i].Version)
		byVersion[made[i].Version] = fmt.Sprint("writer ", i)
	}
	slices.Sort(versions)
	if len(versions) < 2 || len(slices.Compact(slices.Clone(versions))) != len(versions) || versions[len(versions)-1] != int64(len(versions)) {
		t.Errorf("versions %v", versions)
	}
	if known := must[[]int64](t)(server.PolicyVersions(ctx, p.ID)); !slices.Equal(known, versions) {
		t.Errorf("history %v, answered %v", known, versions)
	}
	for v, description := range byVersion {
		if at := must[*model.Policy](t)(server.PolicyAt(ctx, p.ID, v)); at.Description != description {
			t.Errorf("version %d is %q, was answered to %q", v, at.Description, description)
		}
	}
}

// TestConcurrentCreates: exactly one of those for the same resource is made.
func TestConcurrentCreates(t *testing.T) {
	made, errs := together(6, func(i int) (*model.Policy, error) {
		p := on(t, "same", allow(bob, "select"))
		p.Name = fmt.Sprint(p.Name, " ", i)
		return server.CreatePolicy(ctx, p)
	})
	count := 0
	for i, err := range errs {
		if err == nil {
			count++
			id := made[i].ID
			t.Cleanup(func() { _ = server.DeletePolicy(ctx, id) })
			continue
		}
		wantKind(t, err, admin.Exists, "the slower one")
	}
	if count != 1 {
		t.Errorf("%d policies for the same resource", count)
	}
	before := documents[0].version(t, documents[0].get(t, engine, hive, -1))
	made, errs = together(6, func(i int) (*model.Policy, error) {
		return server.CreatePolicy(ctx, on(t, fmt.Sprint("t", i), allow(bob, "select")))
	})
	for i, err := range errs {
		if err != nil {
			t.Error(err)
			continue
		}
		id := made[i].ID
		t.Cleanup(func() { _ = server.DeletePolicy(ctx, id) })
	}
	if v := documents[0].version(t, documents[0].get(t, engine, hive, -1)); v < before+6 {
		t.Errorf("policy version %d after %d and six policies", v, before)
	}
}

// TestReadersSeeWholeChanges: while a policy changes all the time, the version of
// each download stands for one content, and grows.
func TestReadersSeeWholeChanges(t *testing.T) {
	p := create(t, on(t, "orders", allow(bob, "select")))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			c := *p
			c.Description = fmt.Sprint(i)
			if _, err := server.UpdatePolicy(ctx, &c); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	content := map[int64]string{}
	last := int64(-1)
	for end := time.Now().Add(2 * time.Minute); len(content) < 10 && time.Now().Before(end); {
		doc, err := model.DecodePolicies(documents[0].get(t, engine, hive, -1).body, hive)
		if err != nil {
			t.Error(err)
			break
		}
		text := ""
		for _, x := range doc.Policies {
			text += fmt.Sprint(x.ID, ":", x.Version, x.Description, " ")
		}
		if was, ok := content[*doc.PolicyVersion]; ok && was != text {
			t.Errorf("version %d stands for %s and %s", *doc.PolicyVersion, was, text)
		}
		if *doc.PolicyVersion < last {
			t.Errorf("version %d after %d", *doc.PolicyVersion, last)
		}
		last, content[*doc.PolicyVersion] = *doc.PolicyVersion, text
	}
	close(stop)
	writer.Wait()
	if len(content) < 10 {
		t.Errorf("only %d versions were seen", len(content))
	}
}
