package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type identifier struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

// The most of a list: pages, and names.
const (
	mostPages = 10_000
	mostNames = 1_000_000
)

// pages reads a list to its end; raw is the part of the query that is encoded
// already. Servers page when they are asked to, and some without.
func (c *Client) pages(ctx context.Context, operation, path string, query url.Values, raw string, page func() (into any, add func() (n int, next string))) error {
	token, names := "", 0
	if c.o.PageSize > 0 {
		query.Set("pageSize", strconv.Itoa(c.o.PageSize))
		query.Set("pageToken", "")
	}
	for range mostPages {
		if token != "" {
			query.Set("pageToken", token)
		}
		into, add := page()
		r := call{operation: operation, method: http.MethodGet, path: path, query: strings.Trim(raw+"&"+query.Encode(), "&"), into: into}
		if _, err := c.do(ctx, r); err != nil {
			return err
		}
		n, next := add()
		if names += n; names > mostNames {
			return &Error{Operation: operation, cause: fmt.Errorf("the list is longer than %d names", mostNames)}
		}
		if next == "" {
			return nil
		}
		if next == token {
			return &Error{Operation: operation, cause: fmt.Errorf("%w: a page that follows itself", errNonsense)}
		}
		token = next
	}
	return &Error{Operation: operation, cause: fmt.Errorf("the list has more than %d pages", mostPages)}
}

// Namespaces lists the namespaces one level below parent.
func (c *Client) Namespaces(ctx context.Context, parent []string) (out [][]string, err error) {
	s, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	raw := ""
	if len(parent) > 0 {
		levels, err := s.levels(parent)
		if err != nil {
			return nil, err
		}
		raw = "parent=" + levels
	}
	err = c.pages(ctx, "list namespaces", s.base()+"/namespaces", url.Values{}, raw, func() (any, func() (int, string)) {
		var p struct {
			Namespaces [][]string `json:"namespaces"`
			Next       string     `json:"next-page-token"`
		}
		return &p, func() (int, string) {
			for _, ns := range p.Namespaces {
				// A server that does not heed the parent must not lead in a circle.
				if len(ns) == len(parent)+1 && slices.Equal(ns[:len(parent)], parent) {
					if _, err := s.levels(ns); err == nil {
						out = append(out, ns)
					}
				}
			}
			return len(p.Namespaces), p.Next
		}
	})
	return out, err
}

// Tables lists the tables of a namespace.
func (c *Client) Tables(ctx context.Context, namespace []string) ([]string, error) {
	return c.names(ctx, "list tables", namespace, "tables")
}

// Views lists the views of a namespace; none where the catalog has no views.
func (c *Client) Views(ctx context.Context, namespace []string) ([]string, error) {
	if s, err := c.settings(ctx); err != nil || !s.views {
		return nil, err
	}
	return c.names(ctx, "list views", namespace, "views")
}

func (c *Client) names(ctx context.Context, operation string, namespace []string, kind string) (out []string, err error) {
	s, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	path, err := s.in(namespace, kind)
	if err != nil {
		return nil, err
	}
	err = c.pages(ctx, operation, path, url.Values{}, "", func() (any, func() (int, string)) {
		var p struct {
			Identifiers []identifier `json:"identifiers"`
			Next        string       `json:"next-page-token"`
		}
		return &p, func() (int, string) {
			for _, i := range p.Identifiers {
				if i.Name != "" && slices.Equal(i.Namespace, namespace) {
					out = append(out, i.Name)
				}
			}
			return len(p.Identifiers), p.Next
		}
	})
	return out, err
}

// Namespace reads the properties of a namespace.
func (c *Client) Namespace(ctx context.Context, namespace []string) (map[string]string, error) {
	var said struct {
		Properties map[string]string `json:"properties"`
	}
	err := c.at(ctx, call{operation: "load namespace", method: http.MethodGet, into: &said}, namespace)
	if said.Properties == nil {
		said.Properties = map[string]string{}
	}
	return said.Properties, err
}

// CreateNamespace creates a namespace.
func (c *Client) CreateNamespace(ctx context.Context, namespace []string, props map[string]string) error {
	s, err := c.settings(ctx)
	if err != nil {
		return err
	}
	if _, err := s.levels(namespace); err != nil {
		return err
	}
	body := map[string]any{"namespace": namespace}
	if len(props) > 0 {
		body["properties"] = props
	}
	_, err = c.do(ctx, call{operation: "create namespace", method: http.MethodPost, path: s.base() + "/namespaces", body: body})
	return err
}

// DropNamespace drops a namespace that holds nothing.
func (c *Client) DropNamespace(ctx context.Context, namespace []string) error {
	return c.at(ctx, call{operation: "drop namespace", method: http.MethodDelete}, namespace)
}

// UpdateNamespace sets and removes properties of a namespace.
func (c *Client) UpdateNamespace(ctx context.Context, namespace []string, set map[string]string, remove []string) error {
	if set == nil {
		set = map[string]string{}
	}
	if remove == nil {
		remove = []string{}
	}
	return c.at(ctx, call{operation: "update namespace", method: http.MethodPost, body: map[string]any{"updates": set, "removals": remove}}, namespace, "properties")
}

// DropTable takes a table out of the catalog; with purge the server deletes its
// files.
func (c *Client) DropTable(ctx context.Context, namespace []string, name string, purge bool) error {
	r := call{operation: "drop table", method: http.MethodDelete}
	if purge {
		r.query = "purgeRequested=true"
	}
	return c.at(ctx, r, namespace, "tables", name)
}

// DropView takes a view out of the catalog.
func (c *Client) DropView(ctx context.Context, namespace []string, name string) error {
	return c.at(ctx, call{operation: "drop view", method: http.MethodDelete}, namespace, "views", name)
}

// Rename gives a table, or with view a view, another name.
func (c *Client) Rename(ctx context.Context, view bool, fromNamespace []string, from string, toNamespace []string, to string) error {
	s, err := c.settings(ctx)
	if err != nil {
		return err
	}
	for _, ns := range [][]string{fromNamespace, toNamespace} {
		if _, err := s.levels(ns); err != nil {
			return err
		}
	}
	r := call{operation: "rename table", method: http.MethodPost, path: s.base() + "/tables/rename", body: map[string]identifier{
		"source": {fromNamespace, from}, "destination": {toNamespace, to},
	}}
	if view {
		r.operation, r.path = "rename view", s.base()+"/views/rename"
	}
	_, err = c.do(ctx, r)
	return err
}

// at sends a call about a namespace or what lies in it.
func (c *Client) at(ctx context.Context, r call, namespace []string, more ...string) error {
	_, err := c.answered(ctx, r, namespace, more...)
	return err
}

func (c *Client) answered(ctx context.Context, r call, namespace []string, more ...string) (answer, error) {
	s, err := c.settings(ctx)
	if err != nil {
		return answer{}, err
	}
	if r.path, err = s.in(namespace, more...); err != nil {
		return answer{}, err
	}
	return c.do(ctx, r)
}
