package fetch

import (
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
	"gocloud.dev/gcerrors"
)

// A request says which bytes are wanted.
type request struct {
	unless  string // a version of which no bytes are wanted
	offset  int64  // the first byte, if the content is still of the version
	version string
}

// A body is content on its way.
type body struct {
	io.ReadCloser
	unchanged bool   // it is the version of which no bytes were wanted
	offset    int64  // of its first byte
	size      int64  // of the whole; -1 where nobody says
	version   string // "" where nobody says: then it can neither be resumed nor be known to be unchanged
}

func (c *Cache) open(ctx context.Context, t target, r request) (*body, error) {
	if t.url.Scheme == "https" || t.url.Scheme == "http" {
		return c.openHTTP(ctx, t, r)
	}
	return c.openBlob(ctx, t, r)
}

// maxRedirects is how often a server may send us elsewhere.
const maxRedirects = 5

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
			return &permanent{fmt.Errorf("it is redirected to %s, and only https is followed", Redact(to.URL.String()))}
		}
		return nil
	}
	return &client
}

func (c *Cache) openHTTP(ctx context.Context, t target, r request) (*body, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url.String(), nil)
	if err != nil {
		return nil, &permanent{err}
	}
	req.Header.Set("User-Agent", "noether")
	req.Header.Set("Accept-Encoding", "identity") // lengths and ranges are of the file itself
	if r.offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.offset))
		req.Header.Set("If-Range", r.version)
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
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		resp.Body.Close()
		return nil, waitAsAsked(ctx, resp.Header.Get("Retry-After"), fmt.Errorf("the server answers %s", resp.Status))
	default:
		resp.Body.Close()
		return nil, &permanent{fmt.Errorf("the server answers %s", resp.Status)}
	}
}

// errRange is the error of a server that has nothing behind what was fetched before.
var errRange = errors.New("the server has no more than what was fetched before")

// strongTag is the version of an answer: an ETag that vouches for every byte.
func strongTag(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") && len(tag) < 1000 {
		return tag
	}
	return ""
}

// contentRange reads "bytes 100-199/200".
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

// maxPause bounds how long a server may ask us to wait.
const maxPause = time.Minute

func waitAsAsked(ctx context.Context, after string, err error) error {
	if s, parse := strconv.Atoi(after); parse == nil && s > 0 {
		sleep(ctx, min(time.Duration(s)*time.Second, maxPause))
	}
	return err
}

// plainHTTPError takes the URL, which may be secret, out of an error, and tells what another try cannot mend.
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

// openBlob opens an object of a bucket, or a file of a folder.
func (c *Cache) openBlob(ctx context.Context, t target, r request) (*body, error) {
	address, key := t.bucket()
	open := c.Bucket
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
	out := &body{size: about.Size, version: or(about.ETag, about.ModTime.UTC().Format(time.RFC3339Nano))}
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

// A blobBody closes its bucket with it.
type blobBody struct {
	io.ReadCloser
	bucket *blob.Bucket
}

func (b *blobBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.bucket.Close()) }

// bucket takes a URL apart into a bucket's and a key: s3://bucket/a/b?region=x is a/b in s3://bucket?region=x.
func (t target) bucket() (address, key string) {
	u := *t.url
	if u.Scheme == "file" {
		u.Path, key = path.Split(u.Path)
		u.RawQuery = "metadata=skip"
		return "file://" + filepath.ToSlash(u.Path) + "?" + u.RawQuery, key
	}
	key = strings.TrimPrefix(u.Path, "/")
	u.Path = ""
	if u.Scheme == "s3" { // stores that are S3 in all but name send no checksums, and the hash of the content is checked here
		query := u.Query()
		if query.Get("response_checksum_validation") == "" {
			query.Set("response_checksum_validation", "when_required")
			u.RawQuery = query.Encode()
		}
	}
	return u.String(), key
}

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
