package ranger

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Format is how events are sent to an HTTP endpoint.
type Format string

// The formats.
const (
	Array Format = "array" // one JSON array of events
	Lines Format = "lines" // one JSON object a line
)

// Remote is an HTTP server that takes events.
type Remote struct {
	URL                string
	Username, Password string
	CAFile             string // PEM, to trust beside the system's
	CertFile, KeyFile  string // of this server as a client
	Timeout            time.Duration
}

// maxAnswer is the most of an answer that is read.
const maxAnswer = 64 << 10

// commitWithin is when a Solr shows the events at the latest, in milliseconds.
const commitWithin = 5000

// httpTarget posts batches.
type httpTarget struct {
	client             *http.Client
	url                string
	username, password string
	contentType        string
	encode             func(lines [][]byte) ([]byte, error)
	// check reads the answer to a batch that was taken; it may be nil.
	check func(body []byte) error
}

// newSolr is a Solr collection: URL is that of the collection, such as
// https://solr.example:8983/solr/ranger_audits.
func newSolr(r Remote) (*httpTarget, error) {
	t, err := newTarget(r)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimSuffix(r.URL, "/"))
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	u.Path = strings.TrimSuffix(u.Path, "/update") + "/update"
	q := u.Query()
	q.Set("commitWithin", strconv.Itoa(commitWithin))
	q.Set("wt", "json")
	u.RawQuery = q.Encode()
	t.url, t.contentType, t.encode, t.check = u.String(), "application/json", solrDocs, solrAnswer
	return t, nil
}

// newHTTP is any endpoint.
func newHTTP(r Remote, f Format) (*httpTarget, error) {
	t, err := newTarget(r)
	if err != nil {
		return nil, err
	}
	t.url, t.contentType, t.encode = r.URL, "application/json", array
	if f == Lines {
		t.contentType = "application/x-ndjson"
		t.encode = func(lines [][]byte) ([]byte, error) { return append(bytes.Join(lines, []byte{'\n'}), '\n'), nil }
	}
	return t, nil
}

func newTarget(r Remote) (*httpTarget, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CAFile != "" {
		pem, err := os.ReadFile(r.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %s", reason(err))
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca-file holds no certificate in PEM")
		}
		tlsConfig.RootCAs = pool
	}
	if r.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(r.CertFile, r.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client-cert and client-key: %s", reason(err))
		}
		tlsConfig.Certificates = []tls.Certificate{cert}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = tlsConfig
	return &httpTarget{
		client: &http.Client{
			Transport: transport, Timeout: r.Timeout,
			// A password must not follow to another place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		username: r.Username, password: r.Password,
	}, nil
}

func array(lines [][]byte) ([]byte, error) {
	return append(append([]byte{'['}, bytes.Join(lines, []byte{','})...), ']'), nil
}

func solrDocs(lines [][]byte) ([]byte, error) {
	docs := make([]solrDoc, len(lines))
	for i, l := range lines {
		var e Event
		if err := json.Unmarshal(l, &e); err != nil {
			// Of a newer version, or damaged: it is found when it is sent alone.
			return nil, &rejected{"not an event: " + err.Error()}
		}
		doc, err := e.solr()
		if err != nil {
			return nil, &rejected{"not an event: its time cannot be read"}
		}
		docs[i] = doc
	}
	return json.Marshal(docs)
}

// solrAnswer finds an error in an answer with status 200.
func solrAnswer(body []byte) error {
	var answer struct {
		Header struct {
			Status int `json:"status"`
		} `json:"responseHeader"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return errors.New("the answer is not that of a Solr")
	}
	if answer.Header.Status != 0 {
		return fmt.Errorf("the Solr answered status %d", answer.Header.Status)
	}
	return nil
}

// send implements target.
func (t *httpTarget) send(ctx context.Context, lines [][]byte) error {
	body, err := t.encode(lines)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL is not valid")
	}
	req.Header.Set("Content-Type", t.contentType)
	if t.username != "" {
		req.SetBasicAuth(t.username, t.password)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		// Without the URL, which may hold a secret.
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 == 2:
		if err != nil {
			return err // perhaps it did not arrive: once more
		}
		if t.check != nil {
			return t.check(answer)
		}
		return nil
	case refusesContent(resp.StatusCode):
		return &rejected{why(resp.StatusCode, answer)}
	}
	// All else may be a matter of configuration or of time: nothing is given up.
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &later{why(resp.StatusCode, nil), time.Duration(seconds) * time.Second}
}

// refusesContent reports whether a status is about what was sent, and not about
// who sent it, where to or when.
func refusesContent(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// why describes an answer: its status and how it begins.
func why(status int, body []byte) string {
	text := fmt.Sprintf("the receiver answered %d %s", status, http.StatusText(status))
	var answer struct {
		Error struct {
			Message string `json:"msg"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Error.Message != "" {
		body = []byte(answer.Error.Message)
	}
	const most = 300
	if len(body) > most {
		body = body[:most]
	}
	if len(body) > 0 {
		text += ": " + strings.ToValidUTF8(strings.Join(strings.Fields(string(body)), " "), "?")
	}
	return text
}

func (t *httpTarget) close() { t.client.CloseIdleConnections() }
