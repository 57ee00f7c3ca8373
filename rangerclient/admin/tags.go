package admin

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// ProjectTags implements policy.Administrator. The column "" is the table itself.
//
// There is no moment at which a column lacks a tag that it has before and after:
// tags are added first, and each resource is sent with all tags that it is to
// have, those of others included, so that it does not matter whether the server
// adds to a resource or replaces its tags.
func (a *Administrator) ProjectTags(ctx context.Context, by policy.Author, t *plan.Table, before, after map[string][]string) error {
	if !a.config.ProjectTags {
		return fault.New(fault.Unsupported, "tags are not written to %s: project-tags of policy source %s is off", a.server.Name(), a.config.Source)
	}
	ctx = WithAuthor(ctx, Author{User: by.User, From: by.From})
	l, err := a.language(ctx)
	if err != nil {
		return err
	}
	p := &projection{language: l, server: a.server}
	for _, column := range keys(before, after) {
		var columns []string
		if column != "" {
			columns = []string{column}
		}
		elements, err := l.resource(t.Name, columns)
		if err != nil {
			return err
		}
		c := projected{elements: elements, want: set(after[column])}
		for _, tag := range set(before[column]) {
			if !slices.Contains(c.want, tag) {
				c.gone = append(c.gone, tag)
			}
		}
		for _, tag := range c.want {
			if err := literal("tag", tag); err != nil {
				return err
			}
		}
		p.columns = append(p.columns, c)
	}
	free, err := a.writer.exclusive(ctx)
	if err != nil {
		return a.fault(err, l.service)
	}
	defer free()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.writer.after)
	defer cancel()
	if err := p.run(ctx); err != nil {
		if lost := (*unanswered)(nil); errors.As(err, &lost) {
			return fault.Wrap(fault.Unavailable, err, "%s did not answer, and the tags of the table there are not what was sent; look at them before repeating", a.server.Name())
		}
		if errors.Is(err, errTagsDiffer) {
			return fault.Wrap(fault.Conflict, err, "the tags of the table on %s are not what was written: somebody else changes them too, or the server did not take them; repeat the statement", a.server.Name())
		}
		return a.fault(err, l.service)
	}
	return a.done(ctx, "the change of tags")
}

// unanswered says that tags are not as they were sent, and that an answer is
// missing that could tell why.
type unanswered struct{ cause error }

func (e *unanswered) Error() string { return "an answer about tags is missing: " + e.cause.Error() }
func (e *unanswered) Unwrap() error { return e.cause }

var errTagsDiffer = errors.New("the tags read back differ")

// projected is a column whose tags are written.
type projected struct {
	elements   map[string]model.Resource
	want, gone []string
}

type projection struct {
	*language
	server  Server
	columns []projected
	now     *model.ServiceTags
	lost    error // answers that did not come
}

func (p *projection) run(ctx context.Context) error {
	if err := p.read(ctx); err != nil {
		return err
	}
	if p.done() {
		return nil
	}
	adding := p.document("add_or_update")
	for _, c := range p.columns {
		has := p.on(c)
		var more []model.Tag
		for _, name := range c.want {
			if !slices.ContainsFunc(has, func(t model.Tag) bool { return t.Type == name }) {
				more = append(more, model.Tag{Type: name})
			}
		}
		if len(more) > 0 {
			// On its own resource; one that differs in letter case stays as it is.
			var own []model.Tag
			for _, r := range p.now.ServiceResources {
				if sameElements(r.ResourceElements, c.elements, false) {
					own = append(own, p.tags(r)...)
				}
			}
			p.add(adding, c.elements, append(own, more...))
		}
	}
	if err := p.send(ctx, adding); err != nil {
		return err
	}
	keeping, deleting := p.document("add_or_update"), p.document("delete")
	for _, c := range p.columns {
		for _, r := range p.now.ServiceResources {
			if !sameElements(r.ResourceElements, c.elements, true) {
				continue
			}
			has := p.tags(r)
			left := slices.DeleteFunc(slices.Clone(has), func(t model.Tag) bool { return slices.Contains(c.gone, t.Type) })
			switch {
			case len(left) == len(has):
			case len(left) == 0:
				p.add(deleting, r.ResourceElements, has)
			default:
				p.add(keeping, r.ResourceElements, left)
			}
		}
	}
	if err := p.send(ctx, keeping); err != nil {
		return err
	}
	if err := p.send(ctx, deleting); err != nil {
		return err
	}
	if p.done() {
		return nil
	}
	// A server that only ever adds to a resource: the whole truth is sent.
	whole := p.document("replace")
	for _, r := range p.now.ServiceResources {
		left := p.tags(r)
		for _, c := range p.columns {
			if sameElements(r.ResourceElements, c.elements, true) {
				left = slices.DeleteFunc(left, func(t model.Tag) bool { return slices.Contains(c.gone, t.Type) })
			}
		}
		if len(left) > 0 {
			p.add(whole, r.ResourceElements, left)
		}
	}
	if err := p.send(ctx, whole); err != nil {
		return err
	}
	switch {
	case p.done():
		return nil
	case p.lost != nil:
		return &unanswered{p.lost}
	}
	return errTagsDiffer
}

func (p *projection) read(ctx context.Context) (err error) {
	p.now, err = p.server.Tags(ctx, p.service)
	return err
}

// send imports a document, if there is anything in it, and reads the outcome,
// whether or not the answer came.
func (p *projection) send(ctx context.Context, t *model.ServiceTags) error {
	if len(t.ServiceResources) == 0 {
		return nil
	}
	err := p.server.ImportTags(ctx, t)
	if KindOf(err) != "" {
		return err
	}
	p.lost = errors.Join(p.lost, err)
	return p.read(ctx)
}

// done reports whether the server has what is wanted.
func (p *projection) done() bool {
	for _, c := range p.columns {
		has := p.on(c)
		is := func(name string) bool {
			return slices.ContainsFunc(has, func(t model.Tag) bool { return t.Type == name })
		}
		if slices.ContainsFunc(c.gone, is) || slices.ContainsFunc(c.want, func(n string) bool { return !is(n) }) {
			return false
		}
	}
	return true
}

// on lists the tags of a column, whatever the letter case of its names: the
// reader does not tell them apart.
func (p *projection) on(c projected) (out []model.Tag) {
	for _, r := range p.now.ServiceResources {
		if sameElements(r.ResourceElements, c.elements, true) {
			out = append(out, p.tags(r)...)
		}
	}
	return out
}

// sameElements compares resources with single values.
func sameElements(a, b map[string]model.Resource, fold bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k, x := range a {
		y, ok := b[k]
		if !ok || len(x.Values) != 1 || len(y.Values) != 1 || x.Excludes || x.Recursive {
			return false
		}
		if v, w := x.Values[0], y.Values[0]; v != w && (!fold || !strings.EqualFold(v, w)) {
			return false
		}
	}
	return true
}

// tags are those of a resource.
func (p *projection) tags(r model.ServiceResource) []model.Tag {
	var out []model.Tag
	for _, id := range p.now.ResourceToTagIDs[strconv.FormatInt(r.ID, 10)] {
		if t, ok := p.now.Tags[strconv.FormatInt(id, 10)]; ok {
			out = append(out, t)
		}
	}
	return out
}

func (p *projection) document(op string) *model.ServiceTags {
	return newTags(p.service, op)
}

// newTags is a document of tags without any.
func newTags(service, op string) *model.ServiceTags {
	version := int64(1)
	return &model.ServiceTags{
		Op: op, ServiceName: service, TagVersion: &version, TagDefinitions: map[string]model.TagDefinition{},
		Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{},
	}
}

func (p *projection) add(to *model.ServiceTags, elements map[string]model.Resource, tags []model.Tag) {
	addTags(to, model.ServiceResource{ResourceElements: elements}, tags, p.now.TagDefinitions)
}

// addTags puts a resource with its tags into a document, under ids of the
// document.
func addTags(to *model.ServiceTags, r model.ServiceResource, tags []model.Tag, definitions map[string]model.TagDefinition) {
	r.ID, r.ServiceName, r.ResourceSignature = int64(len(to.ServiceResources)), to.ServiceName, ""
	to.ServiceResources = append(to.ServiceResources, r)
	at := strconv.FormatInt(r.ID, 10)
	for _, t := range tags {
		id := int64(len(to.Tags))
		t.ID = id
		to.Tags[strconv.FormatInt(id, 10)] = t
		to.ResourceToTagIDs[at] = append(to.ResourceToTagIDs[at], id)
		known := false
		for _, d := range to.TagDefinitions {
			known = known || d.Name == t.Type
		}
		if known {
			continue
		}
		definition := model.TagDefinition{Name: t.Type, Source: "sqe"}
		for _, d := range definitions {
			if d.Name == t.Type {
				definition = d
			}
		}
		definition.ID = int64(len(to.TagDefinitions))
		to.TagDefinitions[strconv.FormatInt(definition.ID, 10)] = definition
	}
}
