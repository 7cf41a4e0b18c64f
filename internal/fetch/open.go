package fetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
	_ "gocloud.dev/blob/s3blob"   // s3://
	"gocloud.dev/gcerrors"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

type request struct {
	unless  string // send nothing if the content has this version; only if offset is 0
	offset  int64  // start at this byte if the content still has the version below, else at 0
	version string // "": HTTP servers start at the offset unchecked; for callers that verify a hash afterwards
}

type body struct {
	io.ReadCloser
	unchanged bool   // the content has the version request.unless, and no bytes follow
	offset    int64  // offset of the first byte
	size      int64  // size of the whole file; -1 if unknown
	version   string // an ETag or a time; "" if unknown, and the download cannot be resumed
}

func (c *Cache) open(ctx context.Context, t target, r request) (*body, error) {
	switch t.url.Scheme {
	case "https", "http":
		return c.openHTTP(ctx, t.url, nil, r)
	case "gs":
		return c.openGCS(ctx, t.url, r)
	}
	return c.openBlob(ctx, t, r)
}

const maxRedirects = 5

// client returns a copy of c.Client, or a default client, that checks redirects.
func (c *Cache) client() *http.Client {
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return &permanent{fmt.Errorf("it is redirected more than %d times", maxRedirects)}
		case to.URL.Scheme != "https" && !(to.URL.Scheme == "http" && via[0].URL.Scheme == "http"):
			return &permanent{fmt.Errorf("it is redirected to %s, and only https is followed", uri.Redact(to.URL.String()))}
		}
		return nil
	}
	return &client
}

// openHTTP requests an address. header holds further fields of the request, such as credentials; it
// may be nil. Its error is of type permanent if a retry would not change it.
func (c *Cache) openHTTP(ctx context.Context, address *url.URL, header http.Header, r request) (*body, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, &permanent{err}
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("User-Agent", "noether")
	req.Header.Set("Accept-Encoding", "identity") // lengths and ranges are of the file itself
	if r.offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.offset))
		if r.version != "" {
			req.Header.Set("If-Range", r.version)
		}
	} else if r.unless != "" {
		req.Header.Set("If-None-Match", r.unless)
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return nil, plainHTTPError(err)
	}
	out := &body{ReadCloser: resp.Body, size: resp.ContentLength, version: strongTag(resp.Header)}
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return out, nil
	case code == http.StatusPartialContent && r.offset > 0:
		from, size, err := contentRange(resp.Header.Get("Content-Range"))
		if err != nil || from != r.offset {
			resp.Body.Close()
			return nil, &permanent{fmt.Errorf("the server answers with other bytes than were asked for (%q)", resp.Header.Get("Content-Range"))}
		}
		out.offset, out.size = from, size
		return out, nil
	case code == http.StatusNotModified && r.unless != "":
		resp.Body.Close()
		return &body{unchanged: true}, nil
	case code == http.StatusRequestedRangeNotSatisfiable && r.offset > 0:
		resp.Body.Close()
		return nil, errRange
	}
	resp.Body.Close()
	return nil, refusal(ctx, resp)
}

// refusal returns the error of an answer. If a retry may succeed, it first waits as the server
// asks.
func refusal(ctx context.Context, resp *http.Response) error {
	err := &statusError{resp.StatusCode, resp.Status, resp.Header}
	if err.code == http.StatusRequestTimeout || err.code == http.StatusTooManyRequests ||
		err.code >= 500 {
		return waitAsAsked(ctx, resp.Header.Get("Retry-After"), err)
	}
	return &permanent{err}
}

type statusError struct {
	code   int
	status string
	header http.Header
}

func (e *statusError) Error() string { return "the server answers " + e.status }

// errRange reports that the file ends before the requested offset.
var errRange = errors.New("the server has no more than what was fetched before")

func strongTag(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") && len(tag) < 1000 {
		return tag
	}
	return ""
}

// contentRange parses the header Content-Range, such as "bytes 100-199/200". The size is -1 if
// unknown.
func contentRange(text string) (from, size int64, err error) {
	rest, ok := strings.CutPrefix(text, "bytes ")
	span, whole, ok2 := strings.Cut(rest, "/")
	first, _, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, errors.New("no range")
	}
	if from, err = strconv.ParseInt(first, 10, 64); err != nil {
		return 0, 0, err
	}
	if whole == "*" {
		return from, -1, nil
	}
	size, err = strconv.ParseInt(whole, 10, 64)
	return from, size, err
}

const maxPause = time.Minute

func waitAsAsked(ctx context.Context, after string, err error) error {
	if s, parse := strconv.Atoi(after); parse == nil && s > 0 {
		sleep(ctx, min(time.Duration(s)*time.Second, maxPause))
	}
	return err
}

// plainHTTPError removes the URL, which may hold a secret, from an error. It marks errors of
// certificates as permanent: a retry would not change them.
func plainHTTPError(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	if !isPermanent(err) && (errors.As(err, &host) || errors.As(err, &authority) || errors.As(err, &invalid)) {
		return &permanent{err}
	}
	return err
}

func (c *Cache) openBlob(ctx context.Context, t target, r request) (*body, error) {
	address, key := t.bucket()
	open := c.Bucket // replaces the function that opens a bucket; nil: blob.OpenBucket
	if open == nil {
		open = blob.OpenBucket
	}
	bucket, err := open(ctx, address)
	if err != nil {
		return nil, blobError(err)
	}
	about, err := bucket.Attributes(ctx, key)
	if err != nil {
		bucket.Close()
		return nil, blobError(err)
	}
	out := &body{size: about.Size, version: cmp.Or(about.ETag, about.ModTime.UTC().Format(time.RFC3339Nano))}
	if out.version == r.unless && r.offset == 0 {
		bucket.Close()
		return &body{unchanged: true}, nil
	}
	if out.version == r.version && r.offset <= about.Size {
		out.offset = r.offset
	}
	reader, err := bucket.NewRangeReader(ctx, key, out.offset, -1, nil)
	if err != nil {
		bucket.Close()
		return nil, blobError(err)
	}
	out.ReadCloser = &blobBody{reader, bucket}
	return out, nil
}

type blobBody struct {
	io.ReadCloser
	bucket *blob.Bucket
}

func (b *blobBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.bucket.Close()) }

// bucket splits a URL into the address of a bucket and a key: s3://bucket/a/b?region=x becomes
// s3://bucket?region=x and a/b.
func (t target) bucket() (address, key string) {
	u := *t.url
	if u.Scheme == "file" {
		u.Path, key = path.Split(u.Path)
		u.RawQuery = "metadata=skip"
		return "file://" + filepath.ToSlash(u.Path) + "?" + u.RawQuery, key
	}
	key = strings.TrimPrefix(u.Path, "/")
	u.Path = ""
	if u.Scheme == "s3" { // many compatible stores send no checksums
		query := u.Query()
		if query.Get("response_checksum_validation") == "" {
			query.Set("response_checksum_validation", "when_required")
			u.RawQuery = query.Encode()
		}
	}
	return u.String(), key
}

// blobError returns an error of a bucket in one line, permanent if a retry would not change it.
func blobError(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return &permanent{errors.New("there is no such file")}
	case gcerrors.PermissionDenied:
		return &permanent{fmt.Errorf("access is denied: %s", text)}
	case gcerrors.InvalidArgument, gcerrors.Unimplemented, gcerrors.FailedPrecondition:
		return &permanent{errors.New(text)}
	}
	return errors.New(text)
}
