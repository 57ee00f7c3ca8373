package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sqe/fault"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// Alter implements policy.Administrator. What the policy holds and Definition has
// no word for stays.
func (a *Administrator) Alter(ctx context.Context, by policy.Author, name string, c policy.Change, check func(policy.Definition) error) error {
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	l, err := a.language(ctx)
	if err != nil {
		return err
	}
	found, err := a.one(ctx, a.services(l), "ALTER POLICY", name)
	if err != nil {
		return err
	}
	_, err = a.writer.Edit(ctx, Place{Service: found.Service, ID: found.ID}, func(p *model.Policy) (*model.Policy, error) {
		if p == nil || p.Name != name {
			return nil, a.noPolicy(name)
		}
		if err := l.apply(p, c); err != nil {
			return nil, err
		}
		if check != nil {
			if err := check(l.stored(p).Definition); err != nil {
				return nil, err
			}
		}
		return p, nil
	})
	if err != nil {
		return a.fault(err, found.Service)
	}
	return a.done(ctx, fmt.Sprintf("policy %q", name))
}

func refuseAlter(format string, args ...any) error {
	return fault.New(fault.BadStatement, "ALTER POLICY: "+format, args...)
}

// apply makes a change.
func (l *language) apply(p *model.Policy, c policy.Change) error {
	if c.Rename != nil {
		if *c.Rename == "" {
			return refuseAlter("the new name is empty")
		}
		p.Name = *c.Rename
	}
	if c.Description != nil {
		p.Description = *c.Description
	}
	if c.Disabled != nil {
		enabled := !*c.Disabled
		p.Enabled = &enabled
	}
	if c.Override != nil {
		p.PolicyPriority = 0
		if *c.Override {
			p.PolicyPriority = 1
		}
	}
	if c.ValidFrom != nil || c.ValidUntil != nil {
		if err := l.revalidate(p, c); err != nil {
			return err
		}
	}
	if len(c.Add)+len(c.Remove) > 0 && p.PolicyType != model.MaskPolicy && p.PolicyType != model.RowFilterPolicy {
		return fault.New(fault.Unsupported, "ALTER POLICY adds to and removes from column masks and row filters; policy %q gives access, which GRANT, DENY and REVOKE change (docs/grants.md)", p.Name)
	}
	if len(c.Remove) > 0 {
		if err := withdraw(p, c.Remove); err != nil {
			return err
		}
	}
	if len(c.Add) == 0 {
		return nil
	}
	kind := policy.MaskDefinition
	if p.PolicyType == model.RowFilterPolicy {
		kind = policy.FilterDefinition
	}
	_, tagged := p.Resources["tag"]
	items, err := l.items(kind, tagged, c.Add)
	if err != nil {
		return altering(err)
	}
	list := itemsOf(p)
	if c.First {
		*list = append(items, *list...)
	} else {
		*list = append(*list, items...)
	}
	return nil
}

// revalidate changes when a policy acts.
func (l *language) revalidate(p *model.Policy, c policy.Change) error {
	now := l.stored(p)
	for _, b := range []string{beyondSchedules, beyondRecurrences, beyondTimes} {
		if slices.Contains(now.Beyond, b) {
			return refuseAlter("policy %q has %s, which a pair of times would drop; change it in the policy server", p.Name, b)
		}
	}
	from, until := now.ValidFrom, now.ValidUntil
	if c.ValidFrom != nil {
		from = *c.ValidFrom
	}
	if c.ValidUntil != nil {
		until = *c.ValidUntil
	}
	var err error
	p.ValiditySchedules, err = schedules(from, until)
	return altering(err)
}

// altering names the statement in a refusal of the translation.
func altering(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return fault.New(f.Kind, "%s", strings.Replace(f.Text, "CREATE POLICY:", "ALTER POLICY:", 1))
	}
	return err
}

// withdraw takes principals out of every item of a mask or row filter policy.
func withdraw(p *model.Policy, who []policy.Grantee) error {
	list := itemsOf(p)
	for _, g := range who {
		found := false
		for _, i := range *list {
			names := &i.Users
			switch g.Kind {
			case policy.GroupGrantee:
				names = &i.Groups
			case policy.RoleGrantee:
				names = &i.Roles
			}
			n := len(*names)
			*names = slices.DeleteFunc(*names, func(x string) bool { return x == g.Name })
			found = found || len(*names) < n
		}
		if !found {
			return refuseAlter("policy %q names no %s %s", p.Name, g.Kind, g.Name)
		}
	}
	*list = slices.DeleteFunc(*list, func(i *model.Item) bool {
		return len(i.Users)+len(i.Groups)+len(i.Roles) == 0
	})
	if len(*list) == 0 {
		return refuseAlter("nobody would be left in policy %q; DROP POLICY removes it", p.Name)
	}
	return nil
}
