# shellcheck shell=bash
# Certificates of a cluster for tests, in a folder: sourced by the scripts beside. A certificate NAME is
# NAME.key and NAME.crt, signed by ca.crt; all are of P-256, which takes no time to make.

# make_authority FOLDER: the authority, and sa.key and sa.pub, with which service accounts' tokens are signed.
make_authority() {
  mkdir -p "$1"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=muster-tests \
    -keyout "$1/ca.key" -out "$1/ca.crt" 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out "$1/sa.key"
  openssl ec -in "$1/sa.key" -pubout -out "$1/sa.pub" 2>/dev/null
}

# make_certificate FOLDER NAME SUBJECT [ALTERNATIVE_NAMES]: e.g. /O=system:masters/CN=admin IP:127.0.0.1
make_certificate() {
  local folder=$1 name=$2 subject=$3 alternatives=${4:-DNS:$2}
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" \
    -keyout "$folder/$name.key" -out "$folder/$name.csr" 2>/dev/null
  openssl x509 -req -in "$folder/$name.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days 3650 \
    -set_serial "0x$(openssl rand -hex 16)" -extfile <(echo "subjectAltName=$alternatives") \
    -out "$folder/$name.crt" 2>/dev/null
}

# make_kubeconfig FOLDER NAME URL [FILE]: FILE.kubeconfig (else NAME's) with the certificate NAME, all in one.
make_kubeconfig() {
  local folder=$1 name=$2 url=$3 file=${4:-$2}
  cat >"$folder/$file.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: muster
  cluster:
    server: $url
    certificate-authority-data: $(base64 -w0 "$folder/ca.crt")
users:
- name: $name
  user:
    client-certificate-data: $(base64 -w0 "$folder/$name.crt")
    client-key-data: $(base64 -w0 "$folder/$name.key")
contexts:
- name: muster
  context: {cluster: muster, user: $name}
current-context: muster
YAML
}
