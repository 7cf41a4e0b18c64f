package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

const secret = "the words of somebody else"

// TestNothingOutsideIsServed checks that nothing outside the folders is served through links or
// addresses.
func TestNothingOutsideIsServed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	outside := newFolder(t, filepath.Join(base, "outside"), "net").finish()
	outside.write("secret.txt", secret)
	dir := filepath.Join(base, "runs")
	inside := newFolder(t, filepath.Join(dir, "inside"), "net").finish()
	link := func(to, from string) {
		t.Helper()
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	// A link to a run folder outside.
	link(outside.dir, filepath.Join(dir, "linked"))
	link(filepath.Join("..", "outside"), filepath.Join(dir, "relative")) // the same, relative
	// A link to a record outside.
	os.MkdirAll(filepath.Join(dir, "false"), 0o777)
	link(filepath.Join(outside.dir, "run.json"), filepath.Join(dir, "false", "run.json"))
	for _, name := range []string{"scores.csv", "study.yaml"} {
		os.Remove(filepath.Join(inside.dir, name))
		link(filepath.Join(outside.dir, "secret.txt"), filepath.Join(inside.dir, name))
	}
	url := site(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	if len(found) != 1 {
		t.Fatalf("the runs are %v", found)
	}
	id := found["runs/inside"]
	for _, path := range []string{"/", "/runs/" + id, "/runs/" + id + "/report", "/api/v1/runs/" + id + "/scores", "/api/v1/runs/" + id + "/scores.csv",
		"/assets/..%2f..%2fsecret.txt", "/assets/../serve.go", "/runs/..%2f..%2foutside", "/runs/../../outside/secret.txt", "/api/v1/runs/%2e%2e/scores", "//outside/secret.txt"} {
		status, body, _ := get(t, url+path)
		if strings.Contains(body, secret) || strings.Contains(body, "study of outside") {
			t.Errorf("%s serves what is outside: %d", path, status)
		}
	}
}

func TestHostsAreChecked(t *testing.T) {
	t.Parallel()
	url := site(t, Options{Dirs: []string{t.TempDir()}, Hosts: []string{"box.lan"}})
	for host, want := range map[string]int{"localhost": 200, "box.lan:7410": 200, "evil.example": 421, "127.0.0.1.evil.example": 421} {
		r, _ := http.NewRequest(http.MethodGet, url, nil)
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", host, res.StatusCode)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "net").finish()
	const token = "0123456789abcdef"
	url := site(t, Options{Dirs: []string{dir}, Token: token})
	for _, path := range []string{"/", "/api/v1/runs", "/assets/serve.js", "/?token=wrong", "/api/v1/events?token="} {
		if status, body, _ := get(t, url+path); status != http.StatusUnauthorized || strings.Contains(body, "net") && strings.Contains(body, "finished") {
			t.Errorf("%s without a token: %d", path, status)
		}
	}
	status, _, header := get(t, url+"//evil.example/?token="+token+"&q=a")
	if status != http.StatusSeeOther || strings.HasPrefix(header.Get("Location"), "//") || strings.Contains(header.Get("Location"), token) {
		t.Errorf("%d to %s", status, header.Get("Location"))
	}
	cookie := header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("the cookie is %s", cookie)
	}
	for name, value := range map[string]string{"Cookie": strings.Split(cookie, ";")[0], "Authorization": "Bearer " + token} {
		r, _ := http.NewRequest(http.MethodGet, url+"/api/v1/runs", nil)
		r.Header.Set(name, value)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
}

// TestHeadersAndMethods checks the security headers of every response, and that all methods that
// change data are rejected.
func TestHeadersAndMethods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newFolder(t, dir, "net").finish()
	url := site(t, Options{Dirs: []string{dir}})
	id := ids(t, url, "")[filepath.Base(dir)]
	for _, path := range []string{"/", "/runs/" + id, "/nowhere", "/api/v1/runs", "/assets/serve.js", "/compare?run=" + id} {
		_, _, header := get(t, url+path)
		if p := header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") || strings.Contains(p, "http") {
			t.Errorf("%s: policy %q", path, p)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, header)
		}
	}
	_, report, header := get(t, url+"/runs/"+id+"/report")
	if !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || !strings.Contains(report, `content="default-src &#39;none&#39;; script-src &#39;sha256-`) {
		t.Error("the report's policy is not what it is in its file")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r, _ := http.NewRequest(method, url+"/api/v1/runs", nil)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
}

// TestHostileNamesAreInert checks that names of models and data are shown as text.
func TestHostileNamesAreInert(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const evil = `"><script>alert(1)</script>`
	f := newFolder(t, filepath.Join(dir, `a"><img src=x onerror=alert(1)>`), evil, "../../etc/passwd")
	f.record.Study, f.record.Data[0].Name = evil, evil
	f.record.Failed = []scores.Failure{{Key: "k", Model: evil, Error: evil}}
	f.record.Models[0].Tags = map[string]string{evil: evil}
	f.finish()
	url := site(t, Options{Dirs: []string{dir}})
	var id string
	for _, id = range ids(t, url, "") {
	}
	for _, path := range []string{"/", "/?q=%22%3E%3Cscript%3Ealert(1)", "/runs/" + id, "/runs/" + id + "/report", "/compare?all=1&run=" + id + "&model=../../etc/passwd&model=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
		"/compare?run=%3Cscript%3Ealert(1)", "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E"} {
		_, body, _ := get(t, url+path)
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s is not inert", path)
		}
	}
}

func TestFoldersThatCannotBeServed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o666)
	for _, dir := range []string{file, filepath.Join(file, "x"), filepath.Join(t.TempDir(), "none")} {
		if _, err := New(Options{Dirs: []string{dir}}); err == nil || !strings.Contains(err.Error(), "serving") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	// A damaged run is left out and does not affect others.
	dir := t.TempDir()
	newFolder(t, filepath.Join(dir, "good"), "net").finish()
	bad := newFolder(t, filepath.Join(dir, "bad"), "net")
	bad.write("run.json", `{"study": "cut`)
	torn := newFolder(t, filepath.Join(dir, "torn"), "net")
	torn.write("cells/"+torn.record.Keys[0]+".json", "{")
	url := site(t, Options{Dirs: []string{dir}})
	found := ids(t, url, "")
	if len(found) != 2 {
		t.Errorf("the runs are %v", found)
	}
	if status, body, _ := get(t, url+"/runs/"+found[filepath.Base(dir)+"/torn"]); status != 500 || !strings.Contains(body, "truncated") {
		t.Errorf("a damaged run: %d %s", status, body)
	}
}
