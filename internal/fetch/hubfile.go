package fetch

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/fetch/uri"
)

// A snapshot is a commit of a repository of the Hugging Face hub. In the cache of the hub's clients
// its files are links to blobs, files that are named by the hash of their content.
type snapshot struct {
	hub     *Hub
	address uri.Hub
	commit  string
	files   []string // names with slashes: the files of the commit, or those that the cache has
}

func (s *snapshot) folder() string { return filepath.Join(s.hub.Dir, s.address.Folder()) }

func (s *snapshot) path(name string) string {
	return filepath.Join(s.folder(), "snapshots", s.commit, filepath.FromSlash(name))
}

func (s *snapshot) has(name string) bool {
	info, err := os.Stat(s.path(name))
	return err == nil && info.Mode().IsRegular()
}

// absenceMark returns the path of the empty file by which the hub's clients record that a commit
// lacks a file.
func (s *snapshot) absenceMark(name string) string {
	return filepath.Join(s.folder(), ".no_exist", s.commit, filepath.FromSlash(name))
}

// stored returns the commit that the revision of an address stood for at the last download, with
// the files that the hub's cache has in the folders in which the model can be. It reports whether
// there are any.
func (h *Hub) stored(a uri.Hub) (*snapshot, bool) {
	s := &snapshot{hub: h, address: a, commit: a.Revision}
	if !uri.Commit.MatchString(a.Revision) {
		raw, err := os.ReadFile(filepath.Join(s.folder(), "refs", filepath.FromSlash(a.Revision)))
		if s.commit = strings.TrimSpace(string(raw)); err != nil || !uri.Commit.MatchString(s.commit) {
			return s, false
		}
	}
	s.files = filesIn(s.path("."), "", "onnx", path.Dir(a.File), a.File, path.Join(a.File, "onnx"))
	return s, len(s.files) > 0
}

// askCommit asks the hub for the commit of the revision of an address and for its files. It records
// in the hub's cache which commit the revision stands for. c.stall is the longest wait for an
// answer, and c.retry repeats a request unless its error is permanent.
func (c *Cache) askCommit(ctx context.Context, h *Hub, a uri.Hub) (*snapshot, error) {
	s := &snapshot{hub: h, address: a}
	address, err := url.Parse(h.Address + "/api/" + a.Kind + "/" + a.Repository + "/revision/" + url.PathEscape(a.Revision))
	if err != nil || address.Host == "" {
		return nil, &permanent{fmt.Errorf("HF_ENDPOINT is %q, not an address such as https://huggingface.co", h.Address)}
	}
	err = c.retry(ctx, a.String(), func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, c.stall(), fmt.Errorf("no answer within %v", c.stall()))
		defer cancel()
		body, err := c.openHTTP(ctx, address, h.header(), request{})
		if err != nil {
			return causeOf(ctx, err)
		}
		defer body.Close()
		var about struct {
			SHA      string
			Siblings []struct{ RFilename string } // the files, with paths relative to the repository
		}
		const maxBytes = 64 << 20
		if err := json.NewDecoder(io.LimitReader(body, maxBytes)).Decode(&about); err != nil {
			return causeOf(ctx, fmt.Errorf("the hub's answer cannot be read: %w", err))
		}
		if !uri.Commit.MatchString(about.SHA) {
			return &permanent{fmt.Errorf("the hub names no commit of revision %s", a.Revision)}
		}
		s.commit, s.files = about.SHA, nil
		for _, f := range about.Siblings {
			if uri.IsLocalSlash(f.RFilename) {
				s.files = append(s.files, f.RFilename)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if a.Revision != s.commit {
		ref := filepath.Join(s.folder(), "refs", filepath.FromSlash(a.Revision))
		if os.MkdirAll(filepath.Dir(ref), 0o777) == nil {
			// An error is ignored: a cache that cannot be written may still have the files.
			atomicfile.Write(ref, []byte(s.commit))
		}
	}
	return s, nil
}

// hubFile downloads the file called name of a commit into the hub's cache, unless the cache has it.
func (c *Cache) hubFile(ctx context.Context, s *snapshot, name string) error {
	if s.has(name) {
		return nil
	}
	address, err := url.Parse(s.hub.Address)
	if err != nil {
		return &permanent{err}
	}
	address = address.JoinPath(s.address.Page(), "resolve", s.commit, name)
	text := uri.Hub{Kind: s.address.Kind, Repository: s.address.Repository, Revision: s.address.Revision, File: name}.String()
	var about blobInfo
	err = c.retry(ctx, text, func() error {
		about, err = c.describe(ctx, s.hub, address)
		return err
	})
	if err != nil {
		return err
	}
	blob := filepath.Join(s.folder(), "blobs", about.hash)
	locks := filepath.Join(s.hub.Dir, ".locks", s.address.Folder())
	for _, dir := range []string{filepath.Dir(blob), locks, filepath.Dir(s.path(name))} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return &permanent{fmt.Errorf("the hub's cache cannot be written: %w; set HF_HOME to another folder", err)}
		}
	}
	// The hub's own clients take the same lock.
	unlock := lockFor(ctx, filepath.Join(locks, about.hash+".lock"))
	defer unlock()
	if s.has(name) {
		return nil
	}
	if _, err := os.Stat(blob); err != nil {
		if err := c.downloadBlob(ctx, s.hub, address, text, about, blob); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return s.link(name, blob)
}

// link makes the path of a file a link to a blob, or a copy on systems without links.
func (s *snapshot) link(name, blob string) error {
	file := s.path(name)
	relative, err := filepath.Rel(filepath.Dir(file), blob)
	if err != nil {
		return &permanent{err}
	}
	os.Remove(file) // a link to a blob that no longer exists
	if os.Symlink(relative, file) == nil {
		return nil
	}
	if err := linkOrCopy(blob, file); err != nil {
		return &permanent{err}
	}
	return nil
}

type blobInfo struct {
	hash string // hexadecimal: SHA-256 of large files, else the SHA-1 of Git
	size int64  // in bytes; -1 if unknown
}

var hubHash = regexp.MustCompile(`^(?:W/)?"?([0-9a-f]{64}|[0-9a-f]{40})"?$`)

// describe asks the hub for the hash and size of a file. An answer that redirects to the server of
// large files contains both, so this redirect is not followed.
func (c *Cache) describe(ctx context.Context, h *Hub, address *url.URL) (blobInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.stall(), fmt.Errorf("no answer within %v", c.stall()))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address.String(), nil)
	if err != nil {
		return blobInfo{}, &permanent{err}
	}
	req.Header = h.header()
	req.Header.Set("User-Agent", "noether")
	req.Header.Set("Accept-Encoding", "identity")
	client := c.client()
	follow := client.CheckRedirect
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if to.Response.Header.Get("X-Linked-Etag") != "" {
			return http.ErrUseLastResponse
		}
		return follow(to, via)
	}
	resp, err := client.Do(req)
	if err != nil {
		return blobInfo{}, causeOf(ctx, plainHTTPError(err))
	}
	resp.Body.Close()
	if resp.StatusCode >= 400 {
		return blobInfo{}, refusal(ctx, resp)
	}
	tag, length := resp.Header.Get("X-Linked-Etag"), resp.Header.Get("X-Linked-Size")
	if tag == "" {
		tag, length = resp.Header.Get("ETag"), resp.Header.Get("Content-Length")
	}
	match := hubHash.FindStringSubmatch(tag)
	if match == nil {
		return blobInfo{}, &permanent{fmt.Errorf("the hub gives no hash of the file (ETag %q), so a download could not be verified", tag)}
	}
	size, err := strconv.ParseInt(length, 10, 64)
	if err != nil {
		size = -1
	}
	return blobInfo{match[1], size}, nil
}

// downloadBlob downloads a file to the path blob and verifies its hash. It resumes an interrupted
// download. text is the address in messages.
func (c *Cache) downloadBlob(ctx context.Context, h *Hub, address *url.URL, text string, about blobInfo, blob string) error {
	if about.size > c.maxFile() {
		return c.tooLarge()
	}
	part := blob + ".incomplete" // as the hub's own clients call it
	open := func(ctx context.Context, offset int64) (*body, error) {
		return c.openHTTP(ctx, address, h.header(), request{offset: offset})
	}
	begin := func(b *body) error {
		if about.size >= 0 && b.size >= 0 && b.size != about.size {
			return fmt.Errorf("the server has %d bytes, and the hub says %d", b.size, about.size)
		}
		return nil
	}
	return c.retry(ctx, text, func() error {
		info, err := os.Stat(part)
		resumed := err == nil && info.Size() > 0
		if !resumed || info.Size() != about.size {
			if _, _, err := c.transfer(ctx, text, part, resumed, open, begin); err != nil {
				return err
			}
		}
		actual, err := hubHashOf(part, about.hash)
		switch {
		case err != nil:
			return &permanent{err}
		case actual == about.hash:
			if err := os.Rename(part, blob); err != nil {
				return &permanent{err}
			}
			return nil
		}
		os.Remove(part)
		if err := fmt.Errorf("has the hash %s, and the hub says %s", actual, about.hash); !resumed {
			return &permanent{err}
		}
		return errors.New("the part that an earlier download had left was damaged") // start again
	})
}

// hubHashOf returns the hash of a file, of the same kind as the hash like: SHA-256, or Git's SHA-1
// of a blob.
func hubHashOf(file, like string) (string, error) {
	if len(like) == 2*sha256.Size {
		return FileHash(file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	var h hash.Hash = sha1.New()
	io.Copy(h, strings.NewReader(fmt.Sprintf("blob %d\x00", info.Size())))
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
