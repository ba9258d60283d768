# Paths come from the servers, and what is behind -- is a command line of its own.
_lockkeeper() {
    local at=${words[(i)--]} found
    if (( at < CURRENT )); then
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
    if found=$(command lockkeeper __paths "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null); then
        [[ -n $found ]] && compadd -- "${(@f)found}"
        return
    fi
    _lockkeeper_itself "$@"
}

compdef _lockkeeper lockkeeper
if [ "$funcstack[1]" = "_lockkeeper" ]; then
    _lockkeeper "$@"
fi
