package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestServiceTokens: one of several who need a token asks for it, the others get the
// same one, and who gives up waiting does not wait for the endpoint.
func TestServiceTokens(t *testing.T) {
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		fmt.Fprintf(w, `{"access_token": "one", "token_type": "bearer", "expires_in": 3600}`)
	}))
	defer server.Close()
	tokens := Service(ClientCredentials{Catalog: "lake", URL: server.URL, HTTP: server.Client()})
	got := make(chan string, 3)
	ask := func() {
		token, err := tokens.Token(context.Background())
		got <- fmt.Sprint(token.Bearer, err)
	}
	go ask()
	<-asked
	go ask()
	go ask()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	given := make(chan error, 1)
	go func() {
		_, err := tokens.Token(ctx)
		given <- err
	}()
	select {
	case err := <-given:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("who gave up waits for the endpoint")
	}
	close(answer)
	for range 3 {
		if g := <-got; g != "one<nil>" {
			t.Error(g)
		}
	}
	if n := len(asked); n != 0 {
		t.Errorf("the endpoint was asked %d times more", n)
	}
}
