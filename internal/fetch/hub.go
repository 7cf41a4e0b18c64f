package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Hub is a server with the interface of the Hugging Face hub, and the cache that its clients
// share.
type Hub struct {
	Address string // such as https://huggingface.co
	Dir     string // the cache: a folder models--ORG--NAME for each repository
	Token   string // sent to the hub alone; "": none
	Offline bool   // use what the cache has
}

// defaultHub returns the hub that the environment names, by the variables of the hub's own client:
// HF_ENDPOINT, HF_HUB_CACHE, HF_HOME, HF_TOKEN, HF_TOKEN_PATH and HF_HUB_OFFLINE.
func defaultHub() (*Hub, error) {
	home := os.Getenv("HF_HOME")
	if home == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("no folder for models of the hub: set HF_HOME (%w)", err)
			}
			cache = filepath.Join(user, ".cache")
		}
		home = filepath.Join(cache, "huggingface")
	}
	token := os.Getenv("HF_TOKEN")
	if token == "" {
		raw, err := os.ReadFile(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
		if err == nil {
			token = string(raw)
		}
	}
	return &Hub{
		Address: strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/"),
		Dir:     cmp.Or(os.Getenv("HF_HUB_CACHE"), filepath.Join(home, "hub")),
		Token:   strings.TrimSpace(token),
		Offline: slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv("HF_HUB_OFFLINE"))),
	}, nil
}

// A hubAddress is a parsed address hf://ORG/NAME[@REVISION][/FILE] of a model, or the same after
// hf://datasets/ of a data set.
type hubAddress struct {
	kind       string // models or datasets
	repository string // ORG/NAME
	revision   string // a branch, a tag or a commit
	file       string // a file, a folder, or a pattern of a data set's files; "": none is named
}

const (
	hubScheme    = "hf://"
	hubDataSets  = hubScheme + datasets + "/"
	models       = "models"
	datasets     = "datasets"
	dataSetUsage = "hf://datasets/ORGANISATION/NAME, with @REVISION and /FILE where needed"
)

// IsHub reports whether an address is one of the hub.
func IsHub(address string) bool { return strings.HasPrefix(address, hubScheme) }

// IsHubData reports whether an address is one of a data set of the hub.
func IsHubData(address string) bool { return strings.HasPrefix(address, hubDataSets) }

var (
	hubPattern = regexp.MustCompile(`^hf://([A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*)(?:@(refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(.*))?$`)
	hubCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// parseHub reads an address. A slash in a revision is written as %2F, except in refs/pr/N.
func parseHub(text string) (hubAddress, error) {
	kind, bare, usage := models, text, "no model: write hf://ORGANISATION/NAME, with @REVISION and /FILE where needed"
	if rest, ok := strings.CutPrefix(text, hubDataSets); ok {
		kind, bare, usage = datasets, hubScheme+rest, "no data set: write "+dataSetUsage
	}
	match := hubPattern.FindStringSubmatch(bare)
	if match == nil || strings.Contains(match[1], "--") || strings.Contains(match[1], "..") {
		return hubAddress{}, fmt.Errorf("%q names %s", text, usage)
	}
	revision, err := url.PathUnescape(cmp.Or(match[2], "main"))
	if err != nil || !isLocalSlash(revision) {
		return hubAddress{}, fmt.Errorf("%s: %q is not a revision", text, match[2])
	}
	file := strings.TrimSuffix(match[3], "/")
	if file != "" && (!isLocalSlash(file) || path.Clean(file) != file) {
		return hubAddress{}, fmt.Errorf("%s: %q is not a file of a repository", text, file)
	}
	return hubAddress{kind, match[1], revision, file}, nil
}

// isLocalSlash reports whether a path with slashes stays within its folder.
func isLocalSlash(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsAny(name, "\\\x00:")
}

func (a hubAddress) String() string {
	text := hubScheme + a.repository
	if a.kind == datasets {
		text = hubDataSets + a.repository
	}
	if a.revision != "main" {
		text += "@" + a.revision
	}
	if a.file != "" {
		text += "/" + a.file
	}
	return text
}

// HubName returns the name of the repository of an address of the hub, without its organisation.
func HubName(address string) string {
	a, err := parseHub(address)
	if err != nil {
		return strings.TrimPrefix(address, hubScheme)
	}
	return path.Base(a.repository)
}

// Pinned returns an address of the hub with the commit in place of the revision, given a file that
// Model or DataFiles returned for it. It returns other addresses as they are.
func Pinned(address, file string) string {
	a, err := parseHub(address)
	if !IsHub(address) || err != nil {
		return address
	}
	_, rest, _ := strings.Cut(filepath.ToSlash(file), "/"+a.folder()+"/snapshots/")
	commit, _, _ := strings.Cut(rest, "/")
	if !hubCommit.MatchString(commit) {
		return address
	}
	a.revision = commit
	return a.String()
}

// SameModel reports whether two addresses are equal but for the revision of a model of the hub.
func SameModel(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := parseHub(a)
	y, err2 := parseHub(b)
	return err1 == nil && err2 == nil && x.repository == y.repository && x.file == y.file
}

// folder returns the name of the repository's folder in the hub's cache.
func (a hubAddress) folder() string {
	return a.kind + "--" + strings.ReplaceAll(a.repository, "/", "--")
}

// page returns the path of the repository at the hub.
func (a hubAddress) page() string {
	if a.kind == datasets {
		return datasets + "/" + a.repository
	}
	return a.repository
}

// A snapshot is a commit of a repository.
type snapshot struct {
	hub     *Hub
	address hubAddress
	commit  string
	files   []string // names with slashes: the files of the commit, or those that the cache has
}

func (s *snapshot) folder() string { return filepath.Join(s.hub.Dir, s.address.folder()) }

// path returns where the cache has, or is to have, a file of the commit.
func (s *snapshot) path(name string) string {
	return filepath.Join(s.folder(), "snapshots", s.commit, filepath.FromSlash(name))
}

// has reports whether the cache has a file of the commit.
func (s *snapshot) has(name string) bool {
	info, err := os.Stat(s.path(name))
	return err == nil && info.Mode().IsRegular()
}

// absenceMark returns the path of the empty file by which the hub's clients record that a commit
// lacks a file.
func (s *snapshot) absenceMark(name string) string {
	return filepath.Join(s.folder(), ".no_exist", s.commit, filepath.FromSlash(name))
}

// hubConfigs are the files that describe a model. They are optional.
var hubConfigs = []string{"preprocessor_config.json", "config.json"}

// configs returns where the files that describe a model may be: beside it, and above a folder onnx.
func configs(model string) []string {
	dirs := []string{path.Dir(model)}
	if path.Base(dirs[0]) == "onnx" {
		dirs = append(dirs, path.Dir(dirs[0]))
	}
	var out []string
	for _, dir := range dirs {
		for _, name := range hubConfigs {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// hubModel returns the path of a model's file in the hub's cache. Its external files and the files
// that describe it are in the cache too.
func (c *Cache) hubModel(ctx context.Context, address string, external func(file string) ([]string, error)) (string, error) {
	a, err := parseHub(address)
	if err == nil && a.kind != models {
		err = fmt.Errorf("%s is a data set, not a model", a)
	}
	if err != nil {
		return "", err
	}
	h, err := c.hub()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout(), fmt.Errorf("the download took longer than %v", c.timeout()))
	defer cancel()
	stored, known := h.stored(a)
	if known && hubCommit.MatchString(a.revision) || h.Offline {
		if file, err := stored.complete(external); err == nil {
			return file, nil
		} else if h.Offline {
			return "", fmt.Errorf("%s: %w; HF_HUB_OFFLINE is set, and %s lacks it", a, err, h.Dir)
		}
	}
	file, err := c.downloadModel(ctx, h, a, external)
	if err == nil {
		return file, nil
	}
	if known && !isPermanent(err) && ctx.Err() == nil {
		if file, absent := stored.complete(external); absent == nil {
			c.log("%s cannot be reached (%v): using the copy of commit %.7s; HF_HUB_OFFLINE=1 skips the attempt", a, err, stored.commit)
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w", a, h.explain(a, err))
}

// hub returns the hub that the cache downloads from. It has no token if requests would send the
// token without encryption.
func (c *Cache) hub() (*Hub, error) {
	h := c.Hub
	if h == nil {
		var err error
		if h, err = defaultHub(); err != nil {
			return nil, err
		}
	}
	if h.Token != "" && !h.isPrivate() {
		c.log("HF_ENDPOINT is %s, without encryption: the token is not sent", h.Address)
		public := *h
		h, public.Token = &public, ""
	}
	return h, nil
}

// stored returns the commit of an address that was last downloaded, with the files of a model that
// the hub's cache has, and reports whether there are any.
func (h *Hub) stored(a hubAddress) (*snapshot, bool) {
	s := &snapshot{hub: h, address: a, commit: a.revision}
	if !hubCommit.MatchString(a.revision) {
		raw, err := os.ReadFile(filepath.Join(s.folder(), "refs", filepath.FromSlash(a.revision)))
		if s.commit = strings.TrimSpace(string(raw)); err != nil || !hubCommit.MatchString(s.commit) {
			return s, false
		}
	}
	s.files = filesIn(s.path("."), "", "onnx", path.Dir(a.file), a.file, path.Join(a.file, "onnx"))
	return s, len(s.files) > 0
}

// complete returns the path of the model's file if the cache has it with its external files, and
// has the files that describe it or knows that there are none. external lists the external files.
func (s *snapshot) complete(external func(string) ([]string, error)) (string, error) {
	if len(s.files) == 0 {
		return "", fmt.Errorf("no file of revision %s is known", s.address.revision)
	}
	name, err := chooseModel(s.files, s.address.file)
	if err != nil {
		return "", err
	}
	weights, err := external(s.path(name))
	if err != nil {
		return "", err
	}
	for _, w := range weights {
		if !s.has(path.Join(path.Dir(name), w)) {
			return "", fmt.Errorf("the file %s of weights is missing", path.Join(path.Dir(name), w))
		}
	}
	if s.hub.Offline {
		return s.path(name), nil
	}
	for _, config := range configs(name) {
		if _, err := os.Stat(s.absenceMark(config)); !s.has(config) && err != nil {
			return "", fmt.Errorf("it is not known whether there is a file %s", config)
		}
	}
	return s.path(name), nil
}

// downloadModel asks the hub for the commit, downloads the files of the model that the cache lacks,
// and returns the path of its file.
func (c *Cache) downloadModel(ctx context.Context, h *Hub, a hubAddress, external func(string) ([]string, error)) (string, error) {
	s, err := c.askCommit(ctx, h, a)
	if err != nil {
		return "", err
	}
	name, err := chooseModel(s.files, a.file)
	if err != nil {
		return "", &permanent{err}
	}
	for _, config := range configs(name) {
		if slices.Contains(s.files, config) {
			err = c.hubFile(ctx, s, config)
		} else if os.MkdirAll(filepath.Dir(s.absenceMark(config)), 0o777) == nil {
			os.WriteFile(s.absenceMark(config), nil, 0o666) // saves a request next time
		}
		if err != nil {
			return "", err
		}
	}
	if err := c.hubFile(ctx, s, name); err != nil {
		return "", err
	}
	weights, err := external(s.path(name))
	if err != nil {
		return "", &permanent{err}
	}
	for _, w := range weights {
		w = path.Join(path.Dir(name), w)
		if !slices.Contains(s.files, w) {
			return "", &permanent{fmt.Errorf("%s keeps weights in %s, which the repository lacks", name, w)}
		}
		if err := c.hubFile(ctx, s, w); err != nil {
			return "", err
		}
	}
	return s.path(name), nil
}

// explain adds what the user can do to an error that is a refusal of the hub.
func (h *Hub) explain(a hubAddress, err error) error {
	var refusal *statusError
	if !errors.As(err, &refusal) {
		return err
	}
	page := h.Address + "/" + a.page()
	token := "set HF_TOKEN to a token of an account that may read it"
	if h.Token != "" {
		token = "the account of the token may not read it"
	}
	switch code := refusal.header.Get("X-Error-Code"); {
	case code == "EntryNotFound":
		return err
	case code == "RevisionNotFound":
		return fmt.Errorf("the repository has no revision %q: see %s", a.revision, page)
	case code == "GatedRepo" || refusal.code == http.StatusForbidden:
		return fmt.Errorf("access has to be granted at %s: %s (%w)", page, token, err)
	case code == "RepoNotFound" || refusal.code == http.StatusUnauthorized || refusal.code == http.StatusNotFound:
		return fmt.Errorf("there is no repository %s, or it is private: check the name, or %s (%w)", page, token, err)
	}
	return err
}

// isPrivate reports whether nobody else can read what is sent to the hub: it is sent by https, or
// to this machine.
func (h *Hub) isPrivate() bool {
	u, err := url.Parse(h.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// header returns the credentials of a request, if there are any.
func (h *Hub) header() http.Header {
	if h.Token == "" {
		return http.Header{}
	}
	return http.Header{"Authorization": {"Bearer " + h.Token}}
}

// ModelIn returns the path of the model in a folder that is laid out as a repository of the hub.
func ModelIn(dir string) (string, error) {
	name, err := chooseModel(filesIn(dir, "", "onnx"), "")
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

// filesIn lists the files of some folders below a folder, with slashes.
func filesIn(dir string, subs ...string) []string {
	var out []string
	for _, sub := range subs {
		entries, _ := os.ReadDir(filepath.Join(dir, sub)) // a folder that cannot be read has no model
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(dir, sub, e.Name())); err == nil && info.Mode().IsRegular() {
				out = append(out, path.Join(sub, e.Name()))
			}
		}
	}
	return out
}

// chooseModel returns the model's file among the files of a repository. wanted is that file, or a
// folder of the repository, or "". In a folder the model is onnx/model.onnx, else model.onnx, else
// the only file whose name ends in .onnx.
func chooseModel(files []string, wanted string) (string, error) {
	var models []string
	for _, f := range files {
		if path.Ext(f) == ".onnx" {
			models = append(models, f)
		}
	}
	slices.Sort(models)
	models = slices.Compact(models)
	if path.Ext(wanted) == ".onnx" {
		if !slices.Contains(models, wanted) {
			return "", fmt.Errorf("there is no file %s%s", wanted, listed("; there are ", models))
		}
		return wanted, nil
	}
	below := slices.DeleteFunc(slices.Clone(models), func(f string) bool { return wanted != "" && !strings.HasPrefix(f, wanted+"/") })
	for _, name := range []string{"onnx/model.onnx", "model.onnx"} {
		if name = path.Join(wanted, name); slices.Contains(below, name) {
			return name, nil
		}
	}
	switch {
	case len(below) == 1:
		return below[0], nil
	case len(below) > 1:
		return "", fmt.Errorf("there are several models%s: add /FILE to the address", listed(", ", below))
	case wanted != "":
		return "", fmt.Errorf("there is no file %s.onnx and no model in a folder %s%s", wanted, wanted, listed("; there are ", models))
	}
	return "", errors.New("there is no .onnx file: export the model to ONNX first")
}

// listed joins the first few names, after an introduction, or returns "" if there are none.
func listed(intro string, names []string) string {
	const shown = 8
	if len(names) == 0 {
		return ""
	}
	text := intro + strings.Join(names[:min(len(names), shown)], ", ")
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}
