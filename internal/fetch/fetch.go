// Package fetch downloads files that a study names by URL: models, arrays, archives of images.
//
// The schemes are https:// (http:// only with the content's SHA-256), s3://, gs:// and file://, and
// hf:// for models and data sets of the Hugging Face hub, which go to the cache of its clients (see
// Hub).
//
// A downloaded file is stored in the user's cache under the SHA-256 of its content, so that one
// download serves every execution of a study and every process of a machine. A download is bounded
// in size and time, and verified if its hash is known. It resumes after an interruption if the
// server names a version of the content, such as an ETag. The cache is bounded, too: it evicts the
// least recently used files, except those that a process uses.
//
// Servers are not trusted. Redirects from https lead to https only, a response that exceeds the
// bound is an error whatever size it states, file names come from the URL, and an archive cannot
// write outside its own folder (see Tree).
package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/noether-ml/noether/internal/fetch/uri"
)

// A Cache downloads files and stores them.
type Cache struct {
	Dir      string        // the folder of the cache
	Size     int64         // largest total size in bytes; 0: 100 GB
	MaxFile  int64         // bytes of a file, and of all files of an archive; 0: 50 GB
	MaxFiles int           // largest number of files and folders of an archive; 0: two million
	Timeout  time.Duration // of a download with all its retries; 0: six hours
	Stall    time.Duration // time without a byte after which a download is retried; 0: a minute
	Retries  int           // number of tries after the first; 0: 4
	Pause    time.Duration // before the first retry, doubled each time; 0: a second

	Client *http.Client // nil: one with the proxy settings of the environment
	// Bucket opens a bucket of S3, or a folder; nil: blob.OpenBucket.
	Bucket func(ctx context.Context, address string) (*blob.Bucket, error)
	GCS    string               // address of Google Cloud Storage, which gs:// stands for; "": the public one
	Hub    *Hub                 // nil: the hub that the environment names
	Log    func(message string) // receives a line for each download; may be nil
}

// defaultSize is the largest size of a cache in bytes.
const defaultSize = 100e9

// Default returns the user's cache: the folder NOETHER_CACHE, by default noether/files in the
// user's cache folder, of at most NOETHER_CACHE_SIZE bytes.
func Default() (*Cache, error) {
	dir := os.Getenv("NOETHER_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for downloads: set NOETHER_CACHE (%w)", err)
		}
		dir = filepath.Join(user, "noether", "files")
	}
	c := &Cache{Dir: dir}
	if text := os.Getenv("NOETHER_CACHE_SIZE"); text != "" {
		if _, err := fmt.Sscan(text, &c.Size); err != nil || c.Size <= 0 {
			return nil, fmt.Errorf("NOETHER_CACHE_SIZE is %q, not a positive number of bytes", text)
		}
	}
	return c, nil
}

type target struct {
	url    *url.URL
	text   string // for messages, redacted
	name   string // of the file
	sha256 string // expected hash of the content; "" if unknown
	tree   bool   // only the files of the archive are needed, not the archive
}

// parse checks a URL. sum is its expected SHA-256, or "".
func parse(text, sum string) (target, error) {
	u, err := url.Parse(text)
	if err != nil {
		return target{}, fmt.Errorf("%q is not a URL", uri.Redact(text))
	}
	if given, ok := strings.CutPrefix(u.Fragment, "sha256="); ok {
		if sum != "" && !strings.EqualFold(sum, given) {
			return target{}, fmt.Errorf("%s: two different SHA-256 values are given: %s and %s", uri.Redact(text), given, sum)
		}
		sum = given
	}
	sum = strings.ToLower(sum)
	if raw, err := hex.DecodeString(sum); err != nil || sum != "" && len(raw) != sha256.Size {
		return target{}, fmt.Errorf("%q is not a SHA-256 of 64 hexadecimal digits", sum)
	}
	u.Fragment = ""
	t := target{url: u, text: uri.Redact(text), name: path.Base(path.Clean("/" + u.Path)), sha256: sum}
	switch {
	case u.Scheme == "hf":
		return t, fmt.Errorf("%s: files of the hub are read as models, and as data by webdataset: and parquet: ("+uri.DataSetUsage+")", t.text)
	case u.Scheme == "http" && sum == "":
		return t, fmt.Errorf("%s is not encrypted: use https, or give the file's SHA-256", t.text)
	case !slices.Contains([]string{"https", "http", "s3", "gs", "file", "mem"}, u.Scheme): // mem: in memory, for tests
		return t, fmt.Errorf("%s: unknown scheme; use https://, s3://, gs:// or file://, or hf:// for models", t.text)
	case u.Host == "" && u.Scheme != "file":
		return t, fmt.Errorf("%s names no host", t.text)
	case u.Host != "" && u.Scheme == "file":
		return t, fmt.Errorf("%s names a host: write file:///PATH", t.text)
	case strings.HasSuffix(u.Path, "/") || t.name == "/" || t.name == "." || !plainName(t.name):
		return t, fmt.Errorf("%s names no file: a folder is fetched as an archive (tar, tar.gz, tgz or zip)", t.text)
	}
	return t, nil
}

// plainName reports whether name is a file name on every operating system, without a folder.
func plainName(name string) bool {
	return filepath.IsLocal(name) && !strings.ContainsAny(name, `/\:`+"\x00") && len(name) <= 200 && !strings.HasPrefix(name, ".")
}

// File returns the path of a file with the content of a URL, under the URL's file name. sum is its
// expected SHA-256, or ""; the URL may give it too, as #sha256=HEX. A file of known hash is
// downloaded once. For others the server is asked whether they changed; if it cannot be reached,
// the stored copy is used.
func (c *Cache) File(ctx context.Context, address, sum string) (string, error) {
	t, err := parse(address, sum)
	if err != nil {
		return "", err
	}
	sum, err = c.content(ctx, t)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	return c.namedPath(sum, t.name)
}

// content makes sure that the cache has the content of a URL (see File), and returns its SHA-256.
// c.serves reports whether the cache has the content with a hash, undamaged.
func (c *Cache) content(ctx context.Context, t target) (sum string, err error) {
	if t.sha256 != "" && c.serves(ctx, t, t.sha256) {
		return t.sha256, nil
	}
	if err := c.prepare(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout(), fmt.Errorf("the download took longer than %v", c.timeout()))
	defer cancel()
	// One process downloads, and others wait for it. On a file system without locks each downloads.
	unlock := lockFor(ctx, c.path("urls", key(t)+".lock"))
	defer unlock()
	if t.sha256 != "" && c.serves(ctx, t, t.sha256) {
		return t.sha256, nil
	}
	known, err := c.readEntry(t) // the record of the last download
	if err != nil || !c.serves(ctx, t, known.SHA256) {
		known = entry{}
	}
	fresh, err := c.download(ctx, t, known)
	switch {
	case err == nil:
	case known.SHA256 != "" && t.sha256 == "" && !isPermanent(err) && ctx.Err() == nil:
		c.log("%s cannot be reached (%v): using the copy of %s", t.text, err, known.When.Format(time.DateOnly))
		return known.SHA256, nil
	default:
		return "", err
	}
	if t.sha256 != "" && fresh.SHA256 != t.sha256 {
		return "", otherHash(fresh.SHA256, t.sha256)
	}
	if err := c.writeEntry(t, fresh); err != nil {
		return "", err
	}
	c.evict()
	return fresh.SHA256, nil
}

// download stores a URL's content in the cache and returns its entry (URL, hash, version, size). If
// the cache has a content already, known is the entry of that content. download returns known if
// the server states that the content did not change.
func (c *Cache) download(ctx context.Context, t target, known entry) (fresh entry, err error) {
	part := c.path("parts", key(t)) // the part file, with what has been received so far
	err = c.retry(ctx, t.text, func() error {
		fresh, err = c.attempt(ctx, t, known, part)
		return err
	})
	if err == nil || isPermanent(err) { // otherwise a later run resumes from the part
		os.Remove(part)
		os.Remove(part + ".version")
	}
	return fresh, err
}

// retry calls do until it succeeds, fails with a permanent error, has failed c.retries() times
// after the first, or the context ends. It pauses between the tries.
func (c *Cache) retry(ctx context.Context, text string, do func() error) error {
	pause := c.pause()
	for try := 1; ; try++ {
		err := do()
		switch {
		case err == nil || isPermanent(err):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case try > c.retries():
			return fmt.Errorf("%w (tried %d times)", err, try)
		}
		c.log("%s: %v; trying again", text, err)
		if sleep(ctx, pause) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		pause = min(2*pause, time.Minute)
	}
}

// attempt tries a download once, resuming at the end of the part file, which holds the bytes that
// were downloaded before.
func (c *Cache) attempt(ctx context.Context, t target, known entry, part string) (entry, error) {
	version, _ := os.ReadFile(part + ".version")
	open := func(ctx context.Context, offset int64) (*body, error) {
		return c.open(ctx, t, request{unless: known.Version, offset: offset, version: string(version)})
	}
	begin := func(b *body) error { return os.WriteFile(part+".version", []byte(b.version), 0o666) }
	body, n, err := c.transfer(ctx, t.text, part, len(version) > 0, open, begin)
	if err != nil || body.unchanged {
		return known, err
	}
	sum, err := c.store(part)
	if err != nil {
		return entry{}, &permanent{err}
	}
	return entry{URL: t.text, SHA256: sum, Version: body.version, Size: n}, nil
}

// transfer opens a response and writes it to the part file, whose length it returns. With resume it
// continues at the end of that file. begin is called before the first byte is written. If the
// content is unchanged, nothing is written.
func (c *Cache) transfer(ctx context.Context, text, part string, resume bool,
	open func(ctx context.Context, offset int64) (*body, error), begin func(*body) error) (*body, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := &watch{every: c.stall()}
	watch.timer = time.AfterFunc(c.stall(), func() {
		cancel(fmt.Errorf("no byte was received for %v", c.stall()))
	})
	defer watch.timer.Stop()
	offset := int64(0)
	if info, err := os.Stat(part); err == nil && resume {
		offset = info.Size()
	}
	body, err := open(ctx, offset)
	if errors.Is(err, errRange) { // the part is complete, or the file is shorter now: start again
		body, err = open(ctx, 0)
	}
	if err != nil {
		return nil, 0, causeOf(ctx, err)
	}
	if body.unchanged {
		return body, 0, nil
	}
	defer body.Close()
	if body.size > c.maxFile() {
		return nil, 0, c.tooLarge()
	}
	if body.offset == 0 {
		c.log("fetching %s%s", text, sizeText(body.size))
	}
	if err := begin(body); err != nil {
		return nil, 0, &permanent{err}
	}
	n, err := c.fill(part, body, watch)
	if err == nil && ctx.Err() != nil { // a cancelled response may end without an error
		err = ctx.Err()
	}
	if err != nil {
		return nil, 0, causeOf(ctx, err)
	}
	if body.size >= 0 && n != body.size {
		return nil, 0, fmt.Errorf("the response ended after %d of %d bytes", n, body.size)
	}
	return body, n, nil
}

func (c *Cache) fill(part string, body *body, watch *watch) (int64, error) {
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, &permanent{err}
	}
	defer f.Close()
	if err := f.Truncate(body.offset); err != nil {
		return 0, &permanent{err}
	}
	if _, err := f.Seek(body.offset, io.SeekStart); err != nil {
		return 0, &permanent{err}
	}
	limit := c.maxFile() - body.offset
	n, err := io.Copy(f, io.LimitReader(watch.reader(body), limit+1))
	switch {
	case n > limit:
		return 0, c.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, errors.New("the response was cut short")
	case err != nil:
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, &permanent{err}
	}
	return body.offset + n, nil
}

func (c *Cache) tooLarge() error {
	return &permanent{fmt.Errorf("the file exceeds the bound of %d bytes", c.maxFile())}
}

// A permanent error is one that a retry would not change.
type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

func isPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}

// causeOf returns the cause of a context's end if that made the operation fail, else err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && !isPermanent(err) {
		return context.Cause(ctx)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A watch calls a function when nothing was read for some time.
type watch struct {
	timer *time.Timer
	every time.Duration
}

func (w *watch) reader(r io.Reader) io.Reader { return &watched{r, w} }

type watched struct {
	r io.Reader
	w *watch
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.timer.Reset(r.w.every)
	}
	return n, err
}

func sizeText(n int64) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf(" (%.1f MB)", float64(n)/1e6)
}

func (c *Cache) log(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

func (c *Cache) maxFile() int64         { return cmp.Or(c.MaxFile, 50e9) }
func (c *Cache) maxFiles() int          { return cmp.Or(c.MaxFiles, 2_000_000) }
func (c *Cache) size() int64            { return cmp.Or(c.Size, defaultSize) }
func (c *Cache) timeout() time.Duration { return cmp.Or(c.Timeout, 6*time.Hour) }
func (c *Cache) stall() time.Duration   { return cmp.Or(c.Stall, time.Minute) }
func (c *Cache) retries() int           { return cmp.Or(c.Retries, 4) }
func (c *Cache) pause() time.Duration   { return cmp.Or(c.Pause, time.Second) }
