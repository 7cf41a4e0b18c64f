package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/hubtest"
)

// commit2 is a commit after hubtest.Commit.
const commit2 = "89abcdef0123456789abcdef0123456789abcdef"

// newHubCache returns an empty cache that reads models from a hub: a server with the interface of
// the Hugging Face hub. The server has one repository, org/net. Revisions such as main and
// refs/pr/1 name a commit of it, and an address is hf://org/net[@REVISION][/FILE].
func newHubCache(t *testing.T, h *hubtest.Server, token string) *Cache {
	t.Helper()
	c := newCache(t)
	c.Hub = &Hub{Address: h.URL, Dir: filepath.Join(t.TempDir(), "hub"), Token: token}
	return c
}

// noWeights returns the external files of weights of a model that has none.
func noWeights(path string) ([]string, error) {
	_, err := os.Stat(path)
	return nil, err
}

// oneWeightFile returns the external files of weights of a model that has one.
func oneWeightFile(path string) ([]string, error) { return []string{"model.onnx_data"}, nil }

// repository returns the files of a repository with a model in two precisions.
func repository() map[string][]byte {
	return map[string][]byte{
		"onnx/model.onnx": content1, "onnx/model_fp16.onnx": content1[:1000], "onnx/model.onnx_data": []byte("weights"),
		"preprocessor_config.json": []byte("{}"), "config.json": []byte(`{"id2label": {}}`), "README.md": []byte("#"), "model.safetensors": nil,
	}
}

// wantModel fetches a model of the hub, compares its content and returns its path.
func wantModel(t *testing.T, c *Cache, address string, data []byte) string {
	t.Helper()
	path, err := c.Model(t.Context(), address, "", noWeights)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s has %d bytes, want %d (%v)", path, len(got), len(data), err)
	}
	return path
}

// refuseModel fetches a model, which must fail with one line that contains the given texts.
func refuseModel(t *testing.T, c *Cache, address string, wants ...string) {
	t.Helper()
	path, err := c.Model(t.Context(), address, "", noWeights)
	if err == nil {
		t.Fatalf("%s: no error, and the file is %s", address, path)
	}
	for _, s := range wants {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is not one line without secrets: %q", err)
	}
}

// TestHubLayout checks that the files lie in the cache as the client library of the hub puts them,
// and that they are requested once.
func TestHubLayout(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	h.Token = "secret" // that the server requires
	c := newHubCache(t, h, "secret")
	path := wantModel(t, c, "hf://org/net", content1)
	root := filepath.Join(c.Hub.Dir, "models--org--net")
	if want := filepath.Join(root, "snapshots", hubtest.Commit, "onnx", "model.onnx"); path != want {
		t.Errorf("the model is %s, want %s", path, want)
	}
	if to, err := os.Readlink(path); err != nil || filepath.ToSlash(to) != "../../../blobs/"+hexSum(content1) {
		t.Errorf("it is a link to %s, want the blob %s; error %v", to, hexSum(content1), err)
	}
	if ref, err := os.ReadFile(filepath.Join(root, "refs", "main")); err != nil || string(ref) != hubtest.Commit {
		t.Errorf("refs/main is %q, want %q; error %v", ref, hubtest.Commit, err)
	}
	for name, data := range map[string]string{"preprocessor_config.json": "{}", "config.json": `{"id2label": {}}`} {
		if got, err := os.ReadFile(filepath.Join(root, "snapshots", hubtest.Commit, name)); err != nil || string(got) != data {
			t.Errorf("%s is %q, want %q; error %v", name, got, data, err)
		}
		if _, err := os.Stat(filepath.Join(root, "blobs", hubtest.GitHash([]byte(data)))); err != nil {
			t.Error(err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(root, "blobs", "*"))
	if len(left) != 3 {
		t.Errorf("blobs are %q, want those of the model and of two configurations: another file was fetched, or a partial download is left", left)
	}
	h.Requests() // forget the requests so far
	if wantModel(t, c, "hf://org/net", content1); len(h.Requests()) != 1 {
		t.Error("the second call requests more than the commit")
	}
	if wantModel(t, c, "hf://org/net@"+hubtest.Commit, content1); len(h.Requests()) != 0 {
		t.Error("a commit that the cache has is requested")
	}
	wantModel(t, c, "hf://org/net@refs/pr/1/onnx/model_fp16.onnx", content1[:1000])
	wantModel(t, c, "hf://org/net@refs%2Fpr%2F1", content1)
	// Pinned returns the address with the commit of the downloaded file as the revision.
	if got := uri.Pinned("hf://org/net/onnx/model.onnx", path); got != "hf://org/net@"+hubtest.Commit+"/onnx/model.onnx" {
		t.Errorf("pinned: %s, want %s", got, "hf://org/net@"+hubtest.Commit+"/onnx/model.onnx")
	}
}

func TestHubWeights(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	path, err := c.Model(t.Context(), "hf://org/net", "", oneWeightFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path + "_data"); err != nil || string(got) != "weights" {
		t.Errorf("the weights are %q, want weights; error %v", got, err)
	}
	delete(h.Files, "onnx/model.onnx_data")
	if _, err := newHubCache(t, h, "").Model(t.Context(), "hf://org/net", "", oneWeightFile); err == nil || !strings.Contains(err.Error(), "which the repository lacks") {
		t.Errorf("without its weights: error %v, want one with %q", err, "which the repository lacks")
	}
}

// TestHubRefusals checks the errors for what cannot be fetched.
func TestHubRefusals(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	refuseModel(t, c, "hf://org/other", "hf://org/other: there is no repository", "or it is private", "set HF_TOKEN", "401")
	refuseModel(t, c, "hf://org/net@none", `no revision "none"`)
	refuseModel(t, c, "hf://org/net/onnx/model_int8.onnx", "there is no file onnx/model_int8.onnx; there are onnx/model.onnx, onnx/model_fp16.onnx")
	refuseModel(t, c, "hf://org/net/vision", "no .onnx file in a folder vision")
	for _, address := range []string{"hf://net", "hf://org/../net", "hf://org/net@a/../../b", "hf://org/net@..", "hf://a--b/net", `hf://org/net/a\b.onnx`} {
		refuseModel(t, c, address, address)
	}
	h.Token = "secret" // the repository is private now
	refuseModel(t, c, "hf://org/net", "set HF_TOKEN")
	refuseModel(t, newHubCache(t, h, "secret-of-another"), "hf://org/net", "the account of the token may not read it")
	h.Gated = true // public, but only approved accounts may download
	refuseModel(t, c, "hf://org/net", "access has to be granted at "+h.URL+"/org/net")
	h.Token = ""
	delete(h.Files, "onnx/model.onnx")
	delete(h.Files, "onnx/model_fp16.onnx")
	refuseModel(t, c, "hf://org/net", "there is no .onnx file: export the model to ONNX first")
	h.Files["a.onnx"], h.Files["b.onnx"] = content1, content1
	refuseModel(t, c, "hf://org/net", "several models, a.onnx, b.onnx: add /FILE")
	c.Hub.Address = "none"
	refuseModel(t, c, "hf://org/net", `HF_ENDPOINT is "none"`)
	if _, err := c.File(t.Context(), "hf://org/net/a.npy", ""); err == nil || !strings.Contains(err.Error(), "as data by webdataset") {
		t.Errorf("a file of the hub as data: error %v, want one with %q", err, "as data by webdataset")
	}
}

func TestHubResumes(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	cuts := 2 // connections that still break, each after 10,000 bytes
	// A hook answers requests for the files of models and weights, or returns false.
	h.Hook = func(w http.ResponseWriter, r *http.Request, name string) bool {
		if cuts == 0 {
			return false
		}
		cuts--
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("Content-Length", strconv.Itoa(len(content1)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content1)-1, len(content1)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(content1[from : from+10_000])
		panic(http.ErrAbortHandler)
	}
	c := newHubCache(t, h, "")
	wantModel(t, c, "hf://org/net", content1)
	log := strings.Join(h.Requests(), "\n")
	for _, want := range []string{"GET /onnx/model.onnx bytes=10000-", "GET /onnx/model.onnx bytes=20000-"} {
		if !strings.Contains(log, want) {
			t.Errorf("no request %q in\n%s", want, log)
		}
	}

	// Another program has left a partial download, whose content differs.
	c = newHubCache(t, h, "")
	blobs := filepath.Join(c.Hub.Dir, "models--org--net", "blobs")
	if err := errors.Join(os.MkdirAll(blobs, 0o777), os.WriteFile(filepath.Join(blobs, hexSum(content1)+".incomplete"), make([]byte, 500), 0o666)); err != nil {
		t.Fatal(err)
	}
	wantModel(t, c, "hf://org/net", content1)

	// It has left a complete one, with the right content.
	c = newHubCache(t, h, "")
	blobs = filepath.Join(c.Hub.Dir, "models--org--net", "blobs")
	if err := errors.Join(os.MkdirAll(blobs, 0o777), os.WriteFile(filepath.Join(blobs, hexSum(content1)+".incomplete"), content1, 0o666)); err != nil {
		t.Fatal(err)
	}
	h.Requests()
	wantModel(t, c, "hf://org/net", content1)
	if log := strings.Join(h.Requests(), "\n"); strings.Contains(log, "GET /onnx/model.onnx") {
		t.Errorf("a complete file was fetched again:\n%s", log)
	}
}

// TestHubVerifies checks that content that differs from the hub's SHA-256 or size is refused.
func TestHubVerifies(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	h.Hook = func(w http.ResponseWriter, r *http.Request, name string) bool {
		other := bytes.Clone(content1)
		other[100]++
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(other))
		return true
	}
	c := newHubCache(t, h, "")
	refuseModel(t, c, "hf://org/net", "and the hub says "+hexSum(content1))
	left, _ := filepath.Glob(filepath.Join(c.Hub.Dir, "models--org--net", "snapshots", "*", "onnx", "*"))
	blobs, _ := filepath.Glob(filepath.Join(c.Hub.Dir, "models--org--net", "blobs", hexSum(content1)+"*"))
	if len(left)+len(blobs) > 0 {
		t.Errorf("files with the wrong content are left: %q %q", left, blobs)
	}
	h.Hook = func(w http.ResponseWriter, r *http.Request, name string) bool {
		w.Write(content1[:50])
		return true
	}
	refuseModel(t, c, "hf://org/net", "the server has 50 bytes")
	h.Hook = nil
	c.MaxFile = 1000
	refuseModel(t, c, "hf://org/net", "exceeds the bound of 1000 bytes")
}

// TestHubOffline checks that the cache is used alone if it is offline (no request may be made), or
// without a connection.
func TestHubOffline(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	wantModel(t, c, "hf://org/net", content1)
	h.Requests()
	c.Hub.Offline = true
	wantModel(t, c, "hf://org/net", content1)
	wantModel(t, c, "hf://org/net@"+hubtest.Commit, content1)
	refuseModel(t, c, "hf://org/net@v2", "HF_HUB_OFFLINE is set")
	refuseModel(t, c, "hf://org/net/onnx/model_fp16.onnx", "there is no file onnx/model_fp16.onnx", "HF_HUB_OFFLINE is set")
	refuseModel(t, c, "hf://org/other", "HF_HUB_OFFLINE is set")
	if log := h.Requests(); len(log) > 0 {
		t.Errorf("requests were made: %q", log)
	}

	c.Hub.Offline = false
	var logged []string
	c.Log = func(m string) { logged = append(logged, m) }
	h.Close()
	wantModel(t, c, "hf://org/net", content1)
	if last := logged[len(logged)-1]; !strings.Contains(last, "using the copy of commit 0123456") {
		t.Errorf("the log is %q, want a last line about the copy of a commit", logged)
	}
	refuseModel(t, c, "hf://org/net/onnx/model_fp16.onnx", "connection refused", "tried 3 times")
}

// TestHubFollowsTheRevision checks that a new commit of the default revision is fetched, and that
// the earlier one stays in the cache.
func TestHubFollowsTheRevision(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	wantModel(t, c, "hf://org/net", content1)
	h.Files["onnx/model.onnx"], h.Commit = []byte("a newer one"), commit2
	second := wantModel(t, c, "hf://org/net", []byte("a newer one"))
	wantModel(t, c, "hf://org/net@"+hubtest.Commit, content1)
	if !strings.Contains(second, commit2) {
		t.Errorf("the newer model is at %s, want a path with commit %s", second, commit2)
	}
	h.Requests()
	c.Hub.Offline = true
	wantModel(t, c, "hf://org/net", []byte("a newer one"))
}

// TestHubConcurrentCaches checks that caches with a common folder fetch a model once.
func TestHubConcurrentCaches(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			other := newCache(t)
			other.Hub = c.Hub
			if _, err := other.Model(t.Context(), "hf://org/net", "", oneWeightFile); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	fetched := 0
	for _, r := range h.Requests() {
		if r == "GET /onnx/model.onnx" {
			fetched++
		}
	}
	if fetched != 1 {
		t.Errorf("the model was fetched %d times, want 1", fetched)
	}
}

func TestHubCacheThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := hubtest.New(t, repository())
	c := newHubCache(t, h, "")
	if err := os.WriteFile(c.Hub.Dir, nil, 0o666); err != nil { // a file in place of the folder stops root too
		t.Fatal(err)
	}
	refuseModel(t, c, "hf://org/net", "the hub's cache cannot be written", "set HF_HOME")
}

func TestDefaultHub(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HF_ENDPOINT", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", home)
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(want Hub) {
		t.Helper()
		if h, err := defaultHub(); err != nil || *h != want {
			t.Errorf("hub %+v, error %v, want %+v", h, err, want)
		}
	}
	check(Hub{Address: "https://huggingface.co", Dir: filepath.Join(home, "hub"), Token: "from-file"})
	t.Setenv("HF_ENDPOINT", "https://hub.example/")
	t.Setenv("HF_HUB_CACHE", "elsewhere")
	t.Setenv("HF_TOKEN", "from-variable")
	t.Setenv("HF_HUB_OFFLINE", "true")
	check(Hub{Address: "https://hub.example", Dir: "elsewhere", Token: "from-variable", Offline: true})
	t.Setenv("HF_HOME", "")
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", home)
	check(Hub{Address: "https://hub.example", Dir: filepath.Join(home, "huggingface", "hub"), Token: "from-variable", Offline: true})
}

// TestTokenNeedsEncryption checks to which addresses the token is sent: over https, or to this
// machine.
func TestTokenNeedsEncryption(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"https://huggingface.co": true, "http://localhost:1": true, "http://127.0.0.1": true, "http://[::1]:2": true,
		"http://hub.example": false, "http://10.0.0.1": false} {
		if got := (&Hub{Address: address}).isPrivate(); got != want {
			t.Errorf("%s is private: %v, want %v", address, got, want)
		}
	}
}

// ModelIn returns the path of the model in a folder.
func TestModelIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ModelIn(dir); err == nil || !strings.Contains(err.Error(), "no .onnx file") {
		t.Errorf("of an empty folder: error %v, want one with %q", err, "no .onnx file")
	}
	// Each file is preferred to those before it.
	for _, name := range []string{"b.onnx", "model.onnx", "onnx/model.onnx"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		if got, err := ModelIn(dir); err != nil || got != path {
			t.Errorf("model %s, error %v, want %s", got, err, path)
		}
	}
}
