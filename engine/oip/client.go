package oip

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

type client struct {
	address
	http  *http.Client
	token string
	note  func(text string) // called for requests that are repeated
	gone  func() error      // see Options
	hangs func(error)
	tries uint
	pause time.Duration // before the first repetition
}

func newClient(a address, o Options) (*client, error) {
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	c := &client{address: a, token: token, note: o.Note, gone: o.Gone, hangs: o.Hangs, tries: 6, pause: 500 * time.Millisecond}
	c.http = &http.Client{Transport: a.transport(o.Requests), CheckRedirect: sameServer}
	if c.note == nil {
		c.note = func(string) {}
	}
	if c.gone == nil {
		c.gone = func() error { return nil }
	}
	if c.hangs == nil { // later requests fail at once
		var hung atomic.Pointer[error]
		c.hangs = func(err error) { hung.Store(&err) }
		ended := c.gone
		c.gone = func() error {
			if err := hung.Load(); err != nil {
				return *err
			}
			return ended()
		}
	}
	return c, nil
}

// A refusal is an answer with a status that is not 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	if r.text == "" {
		return fmt.Sprintf("the server answers %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("the server answers %d: %s", r.status, r.text)
}

// passing reports whether the same request may succeed later.
func (r *refusal) passing() bool {
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// smaller reports whether a smaller batch may be accepted. Servers have no status of their own for
// a batch above their maximum.
func (r *refusal) smaller() bool {
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return true
	}
	return false
}

func (c *client) get(ctx context.Context, path string, into any) error {
	a, err := c.send(ctx, http.MethodGet, path, nil, 0, 16<<20)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%s%s is not the protocol's JSON: %w", c.server, path, err)
	}
	return nil
}

// An answer is the body of a response, and the length of its JSON if binary data follow.
type answer struct {
	body   []byte
	header int // 0: all is JSON
}

// send sends a request with a body of which the first header bytes are JSON (0: all), and returns
// the answer of at most limit bytes. Requests that may succeed later are repeated, with growing
// pauses.
func (c *client) send(ctx context.Context, method, path string, body []byte, header int, limit int64) (answer, error) {
	tried := uint(0)
	try := func() (answer, error) {
		tried++
		if err := c.gone(); err != nil {
			return answer{}, backoff.Permanent(err)
		}
		a, err := c.try(ctx, method, path, body, header, limit)
		var refused *refusal
		var late net.Error
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, backoff.Permanent(ctx.Err())
		case c.socket != "" && errors.As(err, &late) && late.Timeout() && !errors.Is(err, syscall.EAGAIN): // that is a full queue
			err := fmt.Errorf("it does not answer within %v; %s sets another time", c.timeout, TimeoutVariable)
			c.hangs(err)
			return a, backoff.Permanent(err)
		case errors.As(err, &refused) && !refused.passing():
			return a, backoff.Permanent(err)
		case errors.As(err, new(*tls.CertificateVerificationError)):
			return a, backoff.Permanent(c.untrusted(err))
		case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(tls.RecordHeaderError)):
			return a, backoff.Permanent(fmt.Errorf("%s does not speak TLS: give an address that begins with http", c.server))
		case errors.Is(err, errAnswer):
			return a, backoff.Permanent(err)
		case refused == nil && c.ended(ctx) != nil:
			return a, backoff.Permanent(c.gone())
		}
		return a, err
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = c.pause
	a, err := backoff.Retry(ctx, try, backoff.WithBackOff(pauses), backoff.WithMaxTries(c.tries), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, d time.Duration) {
			c.note(fmt.Sprintf("%s: %v: trying again in %.1f s", c.server+c.model, err, d.Seconds()))
		}))
	if err != nil && tried > 1 && ctx.Err() == nil {
		err = fmt.Errorf("%w (tried %d times)", err, tried)
	}
	return a, err
}

// untrusted returns the error of a certificate that is not accepted.
func (c *client) untrusted(err error) error {
	var unverified *tls.CertificateVerificationError
	errors.As(err, &unverified)
	hint := ""
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		hint = "; SSL_CERT_FILE names a file with the certificates of authorities"
		if file := os.Getenv("SSL_CERT_FILE"); file != "" {
			hint = fmt.Sprintf("; SSL_CERT_FILE is %s, which has no certificate of its authority", file)
			if _, err := os.ReadFile(file); err != nil {
				hint = fmt.Sprintf("; SSL_CERT_FILE cannot be read: %v", err)
			}
		}
	}
	return fmt.Errorf("the certificate of %s is not accepted: %w%s", c.server, unverified.Err, hint)
}

// withoutToken returns the text of a server, which may repeat what it was sent, without the token.
func (c *client) withoutToken(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, c.token, "***")
}

// ended returns why a server has ended that is known to do so. A process takes a moment to end.
func (c *client) ended(ctx context.Context) error {
	for range 20 {
		if err := c.gone(); err != nil || c.socket == "" {
			return err
		}
		if open, err := net.Dial("unix", c.socket); err == nil {
			return open.Close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// errAnswer is wrapped by errors of answers that the protocol does not allow.
var errAnswer = errors.New("the server's answer is not the protocol's")

// A stalled is the error of a request of which no byte was sent or arrived for a time.
type stalled struct{ after time.Duration }

func (s stalled) Error() string { return fmt.Sprintf("the connection stood still for %v", s.after) }
func (stalled) Timeout() bool   { return true }
func (stalled) Temporary() bool { return true }

// A watched restarts a timer whenever bytes are read.
type watched struct {
	io.Reader
	timer *time.Timer
	after time.Duration
}

func (w watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.after)
	return w.Reader.Read(p)
}

// try sends a request once. ResponseHeaderTimeout bounds the time from the end of the request to the
// beginning of the answer; here requests and answers end that stand still in between.
func (c *client) try(ctx context.Context, method, path string, body []byte, header int, limit int64) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(2*c.timeout, func() { cancel(stalled{2 * c.timeout}) })
	defer timer.Stop()
	watch := func(r io.Reader) io.Reader { return watched{r, timer, 2 * c.timeout} }
	a, err := c.exchange(ctx, method, path, body, header, limit, watch)
	if still := (stalled{}); err != nil && errors.As(context.Cause(ctx), &still) {
		return answer{}, still
	}
	return a, err
}

func (c *client) exchange(ctx context.Context, method, path string, body []byte, header int, limit int64, watch func(io.Reader) io.Reader) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if len(body) > 0 {
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(watch(bytes.NewReader(body))), nil }
		request.Body, _ = request.GetBody()
	}
	request.Header.Set("User-Agent", "noether")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if header > 0 {
		request.Header.Set("Content-Type", "application/octet-stream")
		request.Header.Set(headerLength, strconv.Itoa(header))
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return answer{}, &refusal{response.StatusCode, message([]byte(c.withoutToken(string(text))))}
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return answer{}, fmt.Errorf("%w: it is encoded as %.20q, which was not asked for", errAnswer, encoding)
	}
	raw, err := io.ReadAll(io.LimitReader(watch(response.Body), limit+1))
	if err != nil {
		return answer{}, err
	}
	if int64(len(raw)) > limit {
		return answer{}, fmt.Errorf("%w: it has more than the %d bytes that its tensors need", errAnswer, limit)
	}
	a := answer{body: raw}
	if text := response.Header.Get(headerLength); text != "" {
		if a.header, err = strconv.Atoi(text); err != nil || a.header < 1 || a.header > len(raw) {
			return answer{}, fmt.Errorf("%w: %s is %q for a body of %d bytes", errAnswer, headerLength, text, len(raw))
		}
	}
	return a, nil
}

// headerLength is the HTTP header with the length of the JSON before binary data.
const headerLength = "Inference-Header-Content-Length"

// message returns the first line of an error of a server; of a traceback of Python the last one,
// which has the error.
func message(body []byte) string {
	var structured struct {
		Error  string `json:"error"`
		Detail any    `json:"detail"`
	}
	text := string(body)
	if json.Unmarshal(body, &structured) == nil {
		switch {
		case structured.Error != "":
			text = structured.Error
		case structured.Detail != nil:
			text = fmt.Sprint(structured.Detail)
		}
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "Traceback (most recent call last)") {
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	text, _, _ = strings.Cut(text, "\n")
	const most = 300
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
