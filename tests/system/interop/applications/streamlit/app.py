"""A page of Streamlit that shows who is signed in."""

import streamlit

if streamlit.user.is_logged_in:
    streamlit.write(streamlit.user.email)
else:
    streamlit.button("Sign in", on_click=streamlit.login)
