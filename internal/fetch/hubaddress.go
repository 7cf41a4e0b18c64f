package fetch

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// A hubAddress is a parsed address of the Hugging Face hub: hf://ORG/NAME[@REVISION][/FILE] for a
// model, hf://datasets/ORG/NAME[@REVISION][/FILE] for a data set.
type hubAddress struct {
	kind       string // models or datasets
	repository string // ORG/NAME
	revision   string // a branch, a tag or a commit; main if the address names none
	file       string // a file, a folder, or a pattern of a data set's files; "": none is named
}

const (
	hubScheme    = "hf://"
	hubDataSets  = hubScheme + datasets + "/"
	models       = "models"
	datasets     = "datasets"
	dataSetUsage = "hf://datasets/ORGANISATION/NAME, with @REVISION and /FILE where needed"
)

// IsHub reports whether an address is one of the Hugging Face hub.
func IsHub(address string) bool { return strings.HasPrefix(address, hubScheme) }

// IsHubData reports whether an address is one of a data set of the hub.
func IsHubData(address string) bool { return strings.HasPrefix(address, hubDataSets) }

var (
	hubPattern = regexp.MustCompile(`^hf://([A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*)(?:@(refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(.*))?$`)
	hubCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// parseHub parses an address of the hub; any other is an error. A slash in a revision is written as
// %2F, except in refs/pr/N and refs/convert/NAME.
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

// isLocalSlash reports whether a relative path with slashes stays within its folder, and has no
// backslash, colon or zero byte.
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
// For an address that is not valid it returns the address without hf://.
func HubName(address string) string {
	a, err := parseHub(address)
	if err != nil {
		return strings.TrimPrefix(address, hubScheme)
	}
	return path.Base(a.repository)
}

// Pinned returns an address of the hub with the commit in place of the revision. file is the path
// of a downloaded file, as Model or DataFiles returned it for the address:
// FOLDER/snapshots/COMMIT/FILE in the hub's cache. Other addresses, and those for which file has no
// commit, are returned as they are.
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

// SameModel reports whether two addresses are equal, or are those of a model of the hub and differ
// in the revision only.
func SameModel(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := parseHub(a)
	y, err2 := parseHub(b)
	x.revision = y.revision
	return err1 == nil && err2 == nil && x.kind == models && x == y
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
